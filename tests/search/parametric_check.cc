#include "tests/search/parametric_check.h"

#include "ir/equal.h"
#include "ir/printer.h"
#include "schedule/parametric/parametric.h"
#include "schedule/schedule.h"
#include "search/space/sampler.h"
#include "search/space/space.h"
#include "search/space/variation.h"
#include "tests/support/check.h"

#include <chrono>
#include <iostream>
#include <string>

namespace prunerc::testing {

using namespace search;  // NOLINT: a test

namespace {

double ms_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

void compare(const Task& task, const SearchSpace& space, int sketch, int num_cases,
             InstanceCount* count) {
  const schedule::Trace& trace = space.sketches[static_cast<std::size_t>(sketch)].trace;
  const std::string& name = space.sketches[static_cast<std::size_t>(sketch)].name;
  auto start = std::chrono::steady_clock::now();
  const Result<schedule::Parametric> made = schedule::parametrize(task.base, trace);
  count->parametrize_ms += ms_since(start);
  ++count->sketches;
  if (!made.ok() && name.ends_with("+chain")) {
    --count->sketches;
    ++count->replayed_only;
    return;
  }
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

}  // namespace

void compare_instances(const Task& task, int num_cases, InstanceCount* count) {
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  for (std::size_t s = 0; s < space->sketches.size(); ++s) {
    compare(task, *space, static_cast<int>(s), num_cases, count);
  }
}

void print_count(const char* what, const InstanceCount& count) {
  std::cout << what << ": " << count.parametric << " of " << count.sketches
            << " sketches are parametric; " << count.equal << " instances equal, " << count.differs
            << " differ, " << count.refused_by_replay << " refused by replay; parametrize "
            << count.parametrize_ms / count.sketches << " ms, instantiate "
            << count.instantiate_ms / (count.equal + count.differs + 1) << " ms, replay "
            << count.replay_ms / (count.equal + count.differs + count.refused_by_replay + 1)
            << " ms\n";
}

}  // namespace prunerc::testing
