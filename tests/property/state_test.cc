// Facts that are kept across random edits are those of a new analysis.
#include "ir/arith/loop_index.h"
#include "ir/printer.h"
#include "schedule/legality/block_state.h"
#include "schedule/schedule.h"
#include "tests/property/random_step.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

namespace prunerc {
namespace {

using namespace ir;        // NOLINT: a test
using namespace testing;   // NOLINT: a test
using namespace schedule;  // NOLINT: a test

void check_facts(const State& kept, const Program& program) {
  const State fresh(program);
  INFO(print(program) << "kept:\n" << print(kept) << "fresh:\n" << print(fresh));
  REQUIRE(kept.same_facts(fresh));
  const LoopIndex index(program);
  for (const ScopeState& scope : fresh.scopes()) {
    REQUIRE(scope.pipeline == check_stage_pipeline(program, index, scope.scope));
  }
}

TEST_CASE("facts survive random edits exactly as a new analysis finds them") {
  int64_t kept_analyses = 0;
  int64_t fresh_analyses = 0;
  for (int i = 0; i < num_cases(60); ++i) {
    Rng rng(first_seed() + static_cast<uint64_t>(i), 7);
    Schedule s(random_program(rng, random_policy(rng)));
    State state(s.program());
    for (int step = 0; step < 10; ++step) {
      const RandomStep chosen = random_step(s, rng);
      if (!s.apply(chosen.instruction, chosen.decision).ok()) continue;
      state = state.after(s.program());
      check_facts(state, s.program());
      kept_analyses += state.num_analyses();
      fresh_analyses += State(s.program()).num_analyses();
    }
  }
  // Otherwise nothing was ever taken over, and nothing shown.
  CHECK(kept_analyses * 4 < fresh_analyses * 3);
}

}  // namespace
}  // namespace prunerc
