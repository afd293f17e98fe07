// Slices of programs that random primitives made: equal to the operator's on their boxes.
#include "schedule/twin/slice.h"

#include "ir/analysis/ownership.h"
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "schedule/schedule.h"
#include "tests/property/random_step.h"
#include "tests/support/check.h"
#include "tests/support/operators.h"

#include <catch2/catch.hpp>

#include <vector>

namespace prunerc {
namespace {

using namespace ir;        // NOLINT: a test
using namespace schedule;  // NOLINT: a test
using namespace testing;   // NOLINT: a test

Program random_schedule(const Program& base, Rng& rng) {
  Schedule s(base);
  constexpr int kSteps = 40;
  for (int i = 0; i < kSteps; ++i) {
    const RandomStep step = random_step(s, rng);
    (void)s.apply(step.instruction, step.decision);  // refused steps change nothing
  }
  return s.program();
}

TEST_CASE("slices of random schedules raise no alarm on their boxes") {
  const std::vector<NamedProgram> gallery = operator_gallery();
  for (int n = 0; n < num_cases(240); ++n) {
    Rng rng(first_seed() + static_cast<uint64_t>(n), 33);
    const NamedProgram& one = gallery[static_cast<std::size_t>(n) % gallery.size()];
    const Program candidate = random_schedule(one.program, rng);
    if (check_ownership(candidate).proof != Proof::kYes) continue;
    for (const Buffer& buffer : one.program.buffers()) {
      if (buffer.role != BufferRole::kOutput) continue;
      FpvOptions options;
      options.window = FpvWindow{};
      for (const Buffer& other : one.program.buffers()) {
        if (other.id == buffer.id) break;
        options.window->output += other.role == BufferRole::kOutput ? 1 : 0;
      }
      std::vector<Interval> box;
      for (const int64_t extent : shape_of(buffer)) {
        const int64_t first = rng.between(0, extent - 1);
        box.push_back({first, rng.between(first, extent - 1)});
        options.window->box.emplace_back(box.back().lo, box.back().hi);
      }
      // Parameters keep their ids.
      const Program part = slice(candidate, {buffer.id, box});
      const FpvVerdict verdict = check_equivalent(one.program, part, options);
      INFO(one.name << ", case " << n << ": " << to_string(verdict) << "\n"
                    << print(candidate) << print(part));
      CHECK(verdict.ok());
    }
  }
}

}  // namespace
}  // namespace prunerc
