// Parametric sketches: numbers for the parameters give what a replay of the trace with the same
// decisions gives, for every sketch of every operator.
#include "schedule/parametric/parametric.h"

#include "search/space/space.h"
#include "tests/search/parametric_check.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

TEST_CASE("an instance of a sketch for a processor is what a replay gives") {
  InstanceCount count;
  for (const NamedProgram& op : operator_programs()) {
    const Task task = make_test_task(op.name);
    compare_instances(task, num_cases(200) / 20, &count);
  }
  print_count("cpu", count);
  CHECK(count.parametric == count.sketches);
  CHECK(count.differs == 0);
}

TEST_CASE("an instance of a sketch for a GPU is what a replay gives") {
  InstanceCount count;
  for (const NamedProgram& op : operator_programs()) {
    if (!op.has_gpu_form) continue;
    const ir::Target target = *ir::target_from_string("cuda-host:sm_80");
    compare_instances(make_task(op.name, operator_program(op.name), target), num_cases(200) / 20,
                      &count);
  }
  print_count("gpu", count);
  CHECK(count.parametric == count.sketches);
  CHECK(count.replayed_only > 0);
  CHECK(count.differs == 0);
}

TEST_CASE("a sketch computes with its parameters what the operator does") {
  for (const NamedProgram& op : operator_programs()) {
    const Task task = make_test_task(op.name);
    const Result<SearchSpace> space = make_space(task);
    REQUIRE_OK(space);
    for (std::size_t s = 0; s < space->sketches.size(); ++s) {
      INFO(op.name << " " << space->sketches[s].name);
      const Result<schedule::Parametric> sketch =
          schedule::parametrize(task.base, space->sketches[s].trace);
      REQUIRE_OK(sketch);
      Rng rng(first_seed(), s);
      const std::vector<ir::Tensor> inputs = random_inputs(task.base, rng);
      const std::vector<int64_t> values =
          s % 2 == 0 ? sketch->space.sample(rng) : *param_values(*sketch, sketch->decisions);
      if (!schedule::check_values(*sketch, values).ok()) continue;
      const Result<std::vector<ir::Tensor>> found =
          ir::interpret(sketch->program, inputs, {.params = values});
      REQUIRE_OK(found);
      CHECK(first_difference(interpret_or_die(task.base, inputs), *found).empty());
    }
  }
}

}  // namespace
}  // namespace prunerc
