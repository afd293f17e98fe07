// Primitives keep declared regions right: what people are refused for never comes out of them.
#include "ir/analysis/declared.h"

#include "ir/printer.h"
#include "schedule/schedule.h"
#include "tests/property/random_step.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

TEST_CASE("declared regions hold in random schedules of random programs") {
  int proved = 0;
  const int count = num_cases(60);
  for (int i = 0; i < count; ++i) {
    Rng rng(first_seed() + static_cast<uint64_t>(i), 8);
    schedule::Schedule s(random_program(rng, random_policy(rng)));
    for (int step = 0; step < 10; ++step) {
      const RandomStep chosen = random_step(s, rng);
      // Steps that are refused are none.
      static_cast<void>(s.apply(chosen.instruction, chosen.decision).ok());
    }
    const Result<void> checked = verify_declared_regions(s.program());
    INFO("seed " << i << "\n" << print(s.program()));
    REQUIRE_OK(checked);
    proved += check_declared_regions(s.program()) == Proof::kYes ? 1 : 0;
  }
  CHECK(proved * 10 > count * 7);
}

}  // namespace
}  // namespace prunerc
