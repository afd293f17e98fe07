// The verifier's two promises: legal rewrites of real operators pass, faults do not. The benchmark
// `schedule` runs the same with larger numbers.
#include "ir/fpv/fpv.h"

#include "tests/property/fpv_runs.h"
#include "tests/support/check.h"
#include "tests/support/operators.h"

#include <catch2/catch.hpp>

#include <cstdio>
#include <cstdlib>

namespace prunerc {
namespace {

using namespace testing;  // NOLINT: a test

TEST_CASE("every operator is equal to itself, and none is unsupported") {
  for (const NamedProgram& op : operator_gallery()) {
    const ir::Program copy = op.program;  // one object would be run once
    const ir::FpvVerdict verdict = ir::check_equivalent(op.program, copy);
    INFO(op.name << ": " << to_string(verdict));
    CHECK(verdict.ok());
    ir::FpvOptions two_pairs;
    two_pairs.width = ir::WorldWidth::kTwo;
    const ir::FpvVerdict wide = ir::check_equivalent(op.program, copy, two_pairs);
    INFO(to_string(wide));
    CHECK(wide.ok());
    if (std::getenv("PRUNERC_TALLY") != nullptr) {
      std::printf("%-60s %s\n", op.name.c_str(), to_string(verdict).c_str());
    }
  }
}

TEST_CASE("random legal traces of real operators raise no alarm") {
  const TraceTally tally = run_traces(num_cases(300), first_seed());
  for (const std::string& alarm : tally.alarms) UNSCOPED_INFO(alarm);
  CHECK(tally.false_alarms == 0);
  CHECK(tally.unsupported == 0);
  CHECK(tally.strays_missed == 0);
  CHECK(tally.strays_unknown * 100 <= tally.traces);
  CHECK(tally.non_dividing * 5 >= tally.traces);
  if (std::getenv("PRUNERC_TALLY") != nullptr) {
    for (const auto& [name, count] : tally.primitives) std::printf("%6d %s\n", count, name.c_str());
    std::printf("%d of %d traces with a tail, %.1f ms a check; %d more with stray registers\n",
                tally.non_dividing, tally.traces, tally.check_s * 1e3 / tally.traces, tally.strays);
  }
}

TEST_CASE("mutants that the interpreter notices are not accepted") {
  const MutantTally tally = run_mutants(num_cases(80), first_seed());
  for (const std::string& text : tally.accepted_texts) UNSCOPED_INFO(text);
  CHECK(tally.accepted == 0);
  if (std::getenv("PRUNERC_TALLY") != nullptr) {
    for (const auto& [name, count] : tally.kinds) std::printf("%6d %s\n", count, name.c_str());
    std::printf("%d unsupported; %d same to the interpreter, %d of them caught\n",
                tally.unsupported, tally.same, tally.same_caught);
    for (const std::string& text : tally.same_texts) std::printf("  same: %s\n", text.c_str());
  }
}

}  // namespace
}  // namespace prunerc
