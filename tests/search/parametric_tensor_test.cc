// The same for sketches with tensor instructions: warps on one architecture, warpgroups and the
// copy engine on the next.
#include "tests/search/parametric_check.h"
#include "tests/support/check.h"
#include "tests/support/half_products.h"

#include <string>
#include <vector>

namespace prunerc::testing {
namespace {

void check_products(const std::string& target, const std::vector<NamedProgram>& products) {
  InstanceCount count;
  for (const NamedProgram& op : products) {
    const search::Task task =
        search::make_task(op.name, op.program, *ir::target_from_string(target));
    compare_instances(task, num_cases(200) / 40, &count);
  }
  print_count(target.c_str(), count);
  CHECK(count.parametric == count.sketches);
  CHECK(count.differs == 0);
}

TEST_CASE("an instance of a sketch for warps is what a replay gives") {
  check_products("cuda-host:sm_80", half_products());
}

TEST_CASE("an instance of a sketch for warpgroups is what a replay gives") {
  check_products("cuda-host:sm_90a", half_products());
  check_products("cuda-host:sm_90a allow_tf32=1", single_products());
}

}  // namespace
}  // namespace prunerc::testing
