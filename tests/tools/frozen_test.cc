// No operator that judges is one that something was learnt from.
#include "search/record/pool.h"
#include "search/space/task.h"
#include "tests/support/check.h"
#include "tools/driver/prunerc.h"

#include <filesystem>
#include <map>
#include <string>

namespace prunerc {
namespace {

const std::string kData = "tests/data/";

std::vector<Operator> operators_of(const std::string& file) {
  OperatorRequest request;
  request.file = kData + file;
  Result<std::vector<Operator>> ops = load_operators(request);
  REQUIRE_OK(ops);
  return std::move(ops).value();
}

// As two tasks are compared everywhere; by where it stands.
std::string canonical(const Operator& op) {
  return search::make_task(op.name, op.program, ir::target_from_string("cpu").value()).key.program;
}

/// Canonical program to who has it.
using Known = std::map<std::string, std::string>;

Known of_pools() {
  Known out;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kData + "pools")) {
    if (entry.path().extension() != ".pool") continue;
    const Result<search::Pool> pool = search::read_pool(entry.path().string());
    REQUIRE_OK(pool);
    out[pool->program] = entry.path().string();
  }
  return out;
}

Known learnt_from() {
  Known out = of_pools();
  for (const char* file : {"pools/corpus.prn", "pools/tasks.prn"}) {
    for (const Operator& op : operators_of(file)) out[canonical(op)] = file;
  }
  return out;
}

TEST_CASE("pools keep programs as tasks have them, so that equal operators are found") {
  const Known known = of_pools();
  for (const Operator& op : operators_of("pools/tasks.prn")) {
    INFO(op.name);
    CHECK(known.contains(canonical(op)));
  }
}

TEST_CASE("frozen operators are in no training data and not there twice") {
  Known known = learnt_from();
  for (const auto& [file, count] :
       {std::pair{"frozen/search.prn", 20}, {"frozen/models.prn", 60}}) {
    const std::vector<Operator> ops = operators_of(file);
    CHECK(static_cast<int>(ops.size()) == count);
    for (const Operator& op : ops) {
      INFO(op.name);
      const auto [at, is_new] = known.try_emplace(canonical(op), file);
      INFO("is in " << at->second);
      CHECK(is_new);
    }
  }
}

}  // namespace
}  // namespace prunerc
