// The facts about blocks as values.
#include "ir/arith/loop_index.h"
#include "schedule/legality/block_state.h"
#include "schedule/schedule.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc {
namespace {

using namespace ir;        // NOLINT: a test
using namespace testing;   // NOLINT: a test
using namespace schedule;  // NOLINT: a test

BlockState of(const State& state, int32_t block) {
  REQUIRE(state.block(BlockId(block)) != nullptr);
  return *state.block(BlockId(block));
}

// Consumer of T before its producer.
constexpr std::string_view kLate = R"(
program late(A: f32[8]) -> (B: f32[8]) {
  buffer T: f32[8] global
  for i in 8 @L0 { block "B" @B0 [v: S(8) = i] { B[v] = T[v] } }
  for i in 8 @L1 { block "T" @B1 [v: S(8) = i] { T[v] = A[v] } }
})";

// Half of what "B" reads is written.
constexpr std::string_view kHalf = R"(
program half(A: f32[8]) -> (B: f32[8]) {
  buffer T: f32[8] global
  for i in 4 @L0 { block "T" @B0 [v: S(8) = i] { T[v] = A[v] } }
  for i in 8 @L1 { block "B" @B1 [v: S(8) = i] { B[v] = T[v] } }
})";

TEST_CASE("a reduction and the spatial block after it have the properties of their kinds") {
  const State state(parse_or_die(kDenseRelu));
  const BlockState sum = of(state, 0);
  CHECK(sum.affine == BlockFault::kNone);
  CHECK(sum.reduction == BlockFault::kNone);
  CHECK(sum.complete == BlockFault::kNotSpatial);
  CHECK(sum.dominant == BlockFault::kNone);
  CHECK(sum.output == BlockFault::kNotOutput);
  const BlockState relu = of(state, 1);
  CHECK(relu.cover == BlockFault::kNone);
  CHECK(relu.complete == BlockFault::kNone);
  CHECK(relu.reduction == BlockFault::kNoInit);
  CHECK(relu.output == BlockFault::kNone);
  REQUIRE(state.scopes().size() == 1);
  CHECK(state.scopes()[0].pipeline == BlockFault::kNone);
}

TEST_CASE("a scope whose reader stands first, or reads too much, is no stage pipeline") {
  CHECK(State(parse_or_die(kLate)).scopes()[0].pipeline == BlockFault::kWriteAfterRead);
  const State half(parse_or_die(kHalf));
  CHECK(of(half, 1).cover == BlockFault::kNotCovered);
  CHECK(half.scopes()[0].pipeline == BlockFault::kNotCovered);
}

TEST_CASE("a statement that is no loop, block or sequence makes a scope opaque") {
  const State state(parse_or_die(R"(
program p(A: f32[8]) -> (B: f32[8]) {
  for i in 8 @L0 { if (i < 8) { block "B" @B0 [v: S(8) = i] { B[v] = A[v] } } }
})"));
  CHECK(state.scopes()[0].pipeline == BlockFault::kOpaqueStatement);
}

TEST_CASE("two writers of one buffer are not dominant, and bindings that collide are not affine") {
  const State state(parse_or_die(R"(
program p(A: f32[8]) -> (B: f32[8]) {
  for i in 8 @L0 { block "low" @B0 [v: S(8) = i * i % 8] { B[v] = A[v] } }
  for i in 8 @L1 { block "high" @B1 [v: S(8) = i] { B[v] = A[v] } }
})"));
  CHECK(of(state, 0).dominant == BlockFault::kNotDominant);
  CHECK(of(state, 1).dominant == BlockFault::kNotDominant);
  CHECK(of(state, 0).affine == BlockFault::kNotAffine);
  CHECK(of(state, 1).affine == BlockFault::kNone);
}

TEST_CASE("an edit of one nest analyses the other no more") {
  Schedule s(parse_or_die(kDenseRelu));
  const State before(s.program());
  REQUIRE_OK(s.split(LoopId(3), {Int(2), Int(4)}));
  const State after = before.after(s.program());
  CHECK(after.same_facts(State(s.program())));
  // The consumer's bindings and its cover; the producer's facts are taken over.
  CHECK(after.num_analyses() == 2);
  CHECK(State(s.program()).num_analyses() == 4);
}

TEST_CASE("an edit of a producer asks again for what its consumer reads") {
  Schedule s(parse_or_die(kDenseRelu));
  const State before(s.program());
  REQUIRE_OK(s.split(LoopId(0), {Int(2), Int(4)}));
  const State after = before.after(s.program());
  CHECK(after.same_facts(State(s.program())));
  CHECK(after.num_analyses() == 3);
}

TEST_CASE("the state of an unchanged program costs nothing") {
  const State before(parse_or_die(kConv));
  const State after = before.after(before.program());
  CHECK(after.num_analyses() == 0);
  CHECK(after.same_facts(before));
}

TEST_CASE("nothing is taken over from another program") {
  const State one(parse_or_die(kHalf));
  const State other = one.after(parse_or_die(kDenseRelu));
  CHECK(other.same_facts(State(parse_or_die(kDenseRelu))));
}

TEST_CASE("facts print with their reasons") {
  const std::string text = print(State(parse_or_die(kHalf)));
  CHECK(text.find("program: stage pipeline no (reads what is not written before)\n") == 0);
  CHECK(text.find("B @B1: affine yes; covered no (reads what is not written before);") !=
        std::string::npos);
}

}  // namespace
}  // namespace prunerc
