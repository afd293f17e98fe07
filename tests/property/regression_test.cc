// Faults that random programs have found, reduced.
#include "codegen/pipeline.h"
#include "ir/printer.h"
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

TEST_CASE("a writer that its guard skips for a whole iteration covers no reader in it") {
  const Program program = parse_or_die(R"(
program p(A: f32[11, 1]) -> (C: f32[11, 1]) {
  buffer T: f32[11, 1] global
  for i in 11 @L0 { for j in 5 @L1 {
    block "a" @B0 [v: S(11) = i, w: S(1) = j] where j < 1 {
      reads A[v, 0]
      writes T[v, 0]
      T[v, w] = A[v, w]*2f32
    }
  } }
  for i in 11 @L2 { for j in 1 @L3 {
    block "c" @B1 [v: S(11) = i, w: S(1) = j] { C[v, w] = T[v, w] + 3f32 }
  } }
})");
  schedule::Schedule s(program, schedule::Verify::kEachStep);
  CHECK_DIAG(s.reverse_compute_at(BlockId(1), LoopId(1)), RegionNotCovered);
  CHECK(s.program().is(program));
}

TEST_CASE("lanes of an element that does not exist are joined nowhere") {
  const Program program = parse_or_die(R"(
program p(A: i32[1, 5, 4]) -> (C: i32[1]) {
  for i in 3 @L0 {
    if i < 1 { C[i] = 0i32 }
    for k in 5 @L1 { for l in 4 @L2 vectorized {
      if i < 1 { C[i] = C[i] + A[i, k, l] }
    } }
  }
})");
  const Result<Target> target = target_from_string("cpu");
  REQUIRE_OK(target);
  bool has_lanes = false;
  for (const codegen::Pass& pass : codegen::cpu_passes()) {
    const Result<Program> after = pass.run(program, *target);
    INFO("pass " << pass.name);
    REQUIRE_OK(after);
    check_same_result(program, *after, 1);
    has_lanes = has_lanes || print(*after).find("C_lanes") != std::string::npos;
  }
  CHECK(has_lanes);  // the pass in question has something to do
}

// T is private to each iteration of the parallel loop as long as both blocks stand in it.
const char* const kPrivate = R"(
program p(A: f32[3], X: f32[4, 3]) -> (Y: f32[4, 3]) {
  buffer T: f32[3] global
  buffer U: f32[4, 3] global
  for i in 4 @L0 parallel {
    for j in 3 @L1 { block "t" @B0 [v: S(3) = j] { T[v] = A[v]*2f32 } }
    for j in 3 @L2 { block "u" @B1 [w: S(4) = i, v: S(3) = j] { U[w, v] = T[v] + X[w, v] } }
  }
  for i in 4 @L3 { for j in 3 @L4 {
    block "y" @B2 [w: S(4) = i, v: S(3) = j] { Y[w, v] = U[w, v]*3f32 }
  } }
})";

TEST_CASE("a reader does not leave the parallel loop that its source is private to") {
  const Program program = parse_or_die(kPrivate);
  schedule::Schedule s(program, schedule::Verify::kEachStep);
  CHECK_DIAG(s.compute_inline(BlockId(1)), BlocksDepend);
  CHECK(s.program().is(program));
  CHECK_DIAG(s.compute_at(BlockId(1), LoopId(3)), BlocksDepend);
  CHECK(s.program().is(program));
}

TEST_CASE("a producer at data's positions is computed whole, not where its reader's guard fails") {
  const Program program = parse_or_die(R"(
program p(X: f32[9], row: i64[7]) -> (Y: f32[7]) {
  buffer T: f32[9] global
  for i in 9 @L0 { block "t" @B0 [v: S(9) = i] { reads X[v] writes T[v] T[v] = X[v] } }
  for k0 in 2 @L1 { for k1 in 4 @L2 {
    block "y" @B1 [v: S(7) = k0*4 + k1] where k0*4 + k1 < 7 {
      reads row[v], T[0 +: 9]
      writes Y[v]
      Y[v] = select(0 <= row[v] && row[v] < 9, T[row[v]], 0f32)
    }
  } }
})");
  schedule::Schedule s(program, schedule::Verify::kEachStep);
  const auto moved = s.compute_at(BlockId(0), LoopId(2));
  if (moved.ok()) check_same_result(program, s.program(), 1);
}

}  // namespace
}  // namespace prunerc
