// Parametric sketches: numbers for the parameters give what a replay of the trace with the same
// decisions gives, for every sketch of every operator.
#include "schedule/parametric.h"

#include "ir/equal.h"
#include "ir/printer.h"
#include "ir/verify.h"
#include "schedule/schedule.h"
#include "search/mutate.h"
#include "search/sampler.h"
#include "search/space.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <chrono>
#include <iostream>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

struct Count {
  int sketches = 0;
  int parametric = 0;
  int numbers = 0;  // sketches that cannot have parameters
  int refused_by_replay = 0;
  int equal = 0;
  int differs = 0;
  double parametrize_ms = 0;
  double instantiate_ms = 0;
  double replay_ms = 0;
};

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

// Rules for tensor instructions decide padding, which is structure.
bool may_have_numbers(const std::string& sketch) {
  return sketch.find("tensor") != std::string::npos || sketch.find("wgmma") != std::string::npos;
}

void compare(const Task& task, const SearchSpace& space, int sketch, int num_cases, Count* count) {
  const schedule::Trace& trace = space.sketches[static_cast<std::size_t>(sketch)].trace;
  const std::string& name = space.sketches[static_cast<std::size_t>(sketch)].name;
  auto start = std::chrono::steady_clock::now();
  const Result<schedule::Parametric> made = schedule::parametrize(task.base, trace);
  count->parametrize_ms += ms_since(start);
  ++count->sketches;
  if (!made.ok() && may_have_numbers(name)) ++count->numbers;
  if (!made.ok()) {
    std::cout << task.name << " " << name << ": " << made.error().message() << "\n";
    return;
  }
  ++count->parametric;
  for (int i = 0; i < num_cases; ++i) {
    Rng rng(first_seed(), static_cast<uint64_t>(sketch), static_cast<uint64_t>(i));
    const Genome genome =
        i == 0 ? default_genome(space, sketch) : random_genome(space, sketch, rng);
    schedule::Trace candidate = trace;
    if (!genome.decisions.empty()) candidate.decisions = genome.decisions;
    start = std::chrono::steady_clock::now();
    const Result<schedule::Schedule> replayed = schedule::replay(task.base, candidate);
    count->replay_ms += ms_since(start);
    if (!replayed.ok()) {
      ++count->refused_by_replay;
      continue;
    }
    const Result<std::vector<int64_t>> values = param_values(*made, candidate.decisions);
    REQUIRE_OK(values);
    CHECK(decisions_of(*made, *values) == candidate.decisions);
    start = std::chrono::steady_clock::now();
    const Result<ir::Program> instance = schedule::instantiate(*made, *values);
    count->instantiate_ms += ms_since(start);
    INFO(task.name << " sketch " << name << " case " << i);
    REQUIRE_OK(instance);
    const ir::Program wanted = schedule::normal_form(replayed->program());
    const bool same = ir::structural_equal(*instance, wanted);
    ++(same ? count->equal : count->differs);
    if (!same && count->differs < 3) {
      std::cout << task.name << " sketch " << name << " case " << i << "\n"
                << "OPEN\n"
                << ir::print(made->program) << "\nINSTANCE\n"
                << ir::print(*instance) << "\nREPLAY\n"
                << ir::print(wanted) << "\n";
    }
  }
}

void compare_all(const Task& task, int num_cases, Count* count) {
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    compare(task, *space, static_cast<int>(s), num_cases, count);
  }
}

void print(const char* what, const Count& count) {
  std::cout << what << ": " << count.parametric << " of " << count.sketches
            << " sketches are parametric; " << count.equal << " instances equal, " << count.differs
            << " differ, " << count.refused_by_replay << " refused by replay; parametrize "
            << count.parametrize_ms / count.sketches << " ms, instantiate "
            << count.instantiate_ms / (count.equal + count.differs + 1) << " ms, replay "
            << count.replay_ms / (count.equal + count.differs + count.refused_by_replay + 1)
            << " ms\n";
}

TEST_CASE("an instance of a sketch for a processor is what a replay gives") {
  Count count;
  for (const NamedProgram& op : operator_programs()) {
    const Task task = make_test_task(op.name);
    compare_all(task, num_cases(200) / 20, &count);
  }
  print("cpu", count);
  CHECK(count.parametric + count.numbers == count.sketches);
  CHECK(count.differs == 0);
}

TEST_CASE("an instance of a sketch for a GPU is what a replay gives") {
  Count count;
  for (const NamedProgram& op : operator_programs()) {
    const ir::Target target = *ir::target_from_string("cuda-host:sm_80");
    compare_all(make_task(op.name, operator_program(op.name), target), num_cases(200) / 20, &count);
  }
  print("gpu", count);
  CHECK(count.parametric + count.numbers == count.sketches);
  CHECK(count.differs == 0);
}

}  // namespace
}  // namespace prunerc
