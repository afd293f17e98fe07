// Faults that random programs have found, reduced.
#include "schedule/schedule.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

TEST_CASE("reverse_compute_at refuses a consumer with more instances than its producer leads to") {
  const Program program = parse_or_die(R"(
program p(A: f32[16]) -> (C: f32[18]) {
  buffer T: f32[16] global
  for i in 16 @L0 { block "double" @B0 [v: S(16) = i] { T[v] = A[v]*2f32 } }
  for i in 18 @L1 { block "pad" @B1 [v: S(18) = i] { C[v] = select(v < 16, T[v], 1f32) } }
})");
  schedule::Schedule s(program, schedule::Verify::kEachStep);
  CHECK_DIAG(s.reverse_compute_at(BlockId(1), LoopId(0)), RegionNotCovered);
  CHECK(s.program().is(program));
  check_same_result(program, s.program(), 1);
}

TEST_CASE("reorder keeps the initialising instance of a fused reduction first") {
  const Program program = parse_or_die(R"(
program p(A: f32[5, 32]) -> (C: f32[5]) {
  for f0 in 7 @L0 { for f1 in 24 @L1 {
    block "sum" @B0 [v: S(5) = (f0*24 + f1) // 32, r: R(32) = (f0*24 + f1) % 32]
        where f0*24 + f1 < 160 {
      init { C[v] = 0f32 }
      C[v] = C[v] + A[v, r]
    }
  } }
})");
  schedule::Schedule s(program, schedule::Verify::kEachStep);
  CHECK_DIAG(s.reorder({LoopId(1), LoopId(0)}), BlockOrderFixed);
  check_same_result(program, s.program(), 1);
}

}  // namespace
}  // namespace prunerc
