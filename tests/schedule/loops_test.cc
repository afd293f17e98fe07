// split, fuse, reorder and loop kinds.
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

constexpr std::string_view kTwoBlocks = R"(
program two(X: f32[8, 8]) -> (Y: f32[8, 8], Z: f32[8, 8]) {
  for i in 8 @L0 { for j in 8 @L1 {
    block "Y" @B0 [vi: S(8) = i, vj: S(8) = j] { Y[vi, vj] = X[vi, vj] + 1f32 }
    block "Z" @B1 [vi: S(8) = i, vj: S(8) = j] { Z[vi, vj] = Y[vi, vj]*2f32 }
  } }
})";

// T[i, j] needs T's row above: the i loop carries a dependence.
constexpr std::string_view kCarried = R"(
program carried(X: f32[8, 8]) -> (Y: f32[8, 8]) {
  for i in 8 @L0 { for j in 8 @L1 {
    block "Y" @B0 [vi: S(8) = i, vj: S(8) = j] {
      Y[vi, vj] = X[vi, vj] + select(1 <= vi, Y[vi - 1, vj], 0f32)
  } } }
})";

constexpr std::string_view kOpaque = R"(
program opaque(X: f32[8]) -> (Y: f32[4]) {
  for i in 8 @L0 { for j in 1 @L1 {
    block "Y" @B0 [v: O(8) = i] { Y[v % 4] = X[v] }
  } }
})";

// Declared spatial, but two instances write one element.
constexpr std::string_view kCollision = R"(
program collision(X: f32[8, 4]) -> (Y: f32[4]) {
  for i in 8 @L0 { for j in 4 @L1 {
    block "Y" @B0 [vi: S(8) = i, vj: S(4) = j] { Y[vj] = X[vi, vj] }
  } }
})";

constexpr std::string_view kScan = R"(
program scan(X: f32[4, 8]) -> (Y: f32[4]) {
  for i in 4 @L0 { for k in 8 @L1 {
    block "Y" @B0 [vi: S(4) = i, vk: R(8) = k] {
      init { Y[vi] = 0f32 }
      Y[vi] = X[vi, vk] - Y[vi]
  } } }
})";

constexpr std::string_view kStoreInLoop = R"(
program plain(X: f32[8]) -> (Y: f32[8]) {
  block "Y" @B0 [] {
    for i in 8 @L0 { Y[i] = X[i] + 1f32 }
  }
})";

TEST_CASE("split makes nests that compute the same") {
  const Case cases[] = {
      {kMatmul, "split(@L0, [4, 4])", ""},
      {kMatmul, "split(@L2, [-1, 8])", ""},
      {kMatmul, "split(@L2, [2, -1, 4])", ""},
      {kMatmul, "split(@L1, [16, 1])", ""},
      {kMatmul, "split(@L1, [16])", ""},
      {kMatmul, "split(@L1, [-1, 5])", ""},
      {kMatmul, "split(@L2, [-1, 7])\nsplit(@L3, [-1, 3])", ""},
      {kMatmul, "split(@L2, [-1, 7])\nsplit(@L4, [2, -1])", ""},
      {kChain, "split(@L1, [3, 4])\nsplit(@L2, [-1, 20])", ""},
      {kStoreInLoop, "split(@L0, [2, 4])", ""},
      {kTwoBlocks, "split(@L1, [-1, 3])\nsplit(@L0, [-1, 3])", ""},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("split says what is wrong") {
  const Case cases[] = {
      {kMatmul, "split(@L9, [4, 4])", "LoopNotFound"},
      {kMatmul, "split(@L0, [])", "SplitNoFactor"},
      {kMatmul, "split(@L0, [3, 3])", "SplitFactorMismatch"},
      {kMatmul, "split(@L0, [-1, -1])", "SplitInferredTwice"},
      {kMatmul, "split(@L0, [0, 4])", "SplitFactorRange"},
      {kMatmul, "split(@L0, [-1, -3])", "SplitFactorRange"},
      {kMatmul, "split(@L0, [1000000, 100000000])", "SplitFactorRange"},
      {kMatmul, "parallel(@L0)\nsplit(@L0, [4, 4])", "LoopNotSerial"},
      {kMatmul, "annotate_loop(@L0, \"unroll\", 4)\nsplit(@L0, [4, 4])", "LoopHasAttr"},
      {kStoreInLoop, "split(@L0, [-1, 3])", "LoopHoldsStatement"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("split guards the tail and only then") {
  const schedule::Schedule even = check_steps(kChain, "split(@L0, [-1, 5])");
  CHECK(print(even.program()).find("where") == std::string::npos);
  const schedule::Schedule odd = check_steps(kChain, "split(@L0, [-1, 4])");
  CHECK(print(odd.program()).find("where i_0*4 + i_1 < 10") != std::string::npos);
}

TEST_CASE("fuse joins nested loops") {
  const Case cases[] = {
      {kMatmul, "fuse([@L0, @L1])", ""},
      {kMatmul, "fuse([@L0, @L1, @L2])", ""},
      {kMatmul, "fuse([@L1, @L2])", ""},
      {kMatmul, "fuse([@L1])", ""},
      {kMatmul, "split(@L0, [4, 4])\nfuse([@L3, @L4])", ""},
      {kMatmul, "split(@L0, [-1, 3])\nfuse([@L3, @L4])", ""},
      {kMatmul, "fuse([@L0, @L1])\nsplit(@L3, [-1, 8])", ""},
      {kTwoBlocks, "fuse([@L0, @L1])", ""},
      {kMatmul, "fuse([])", "LoopListEmpty"},
      {kMatmul, "fuse([@L0, @L2])", "LoopsNotNested"},
      {kMatmul, "fuse([@L1, @L0])", "LoopsNotNested"},
      {kMatmul, "fuse([@L0, @L0])", "LoopsNotNested"},
      {kChain, "fuse([@L0, @L1])", "LoopsNotNested"},
      {kMatmul, "fuse([@L0, @L7])", "LoopNotFound"},
      {kMatmul, "unroll(@L1)\nfuse([@L0, @L1])", "LoopNotSerial"},
      {kMatmul, "annotate_loop(@L0, \"x\", 1)\nfuse([@L0, @L1])", "LoopHasAttr"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("fusing what was split gives the bindings back") {
  const schedule::Schedule s = check_steps(kMatmul, "split(@L0, [4, 4])\nfuse([@L3, @L4])");
  CHECK(print(s.program()).find("= i_0_i_1_f,") != std::string::npos);
}

TEST_CASE("reorder permutes loops whose instances commute") {
  const Case cases[] = {
      {kMatmul, "reorder([@L1, @L0])", ""},
      {kMatmul, "reorder([@L2, @L0])", ""},
      {kMatmul, "reorder([@L2, @L1, @L0])", ""},
      {kMatmul, "reorder([@L0, @L1])", ""},
      {kMatmul, "split(@L2, [4, 8])\nreorder([@L4, @L3, @L0])", ""},
      {kMatmul, "split(@L2, [-1, 7])\nreorder([@L3, @L0, @L4, @L1])", ""},
      {kMatmul, "fuse([@L1, @L2])\nreorder([@L3, @L0])", ""},
      {kTwoBlocks, "reorder([@L1, @L0])", ""},
      {kConv, "reorder([@L6, @L7, @L8, @L3, @L4, @L5])", ""},
      {kMatmul, "parallel(@L0)\nunroll(@L2)\nreorder([@L2, @L1])", ""},
      {kMatmul, "parallel(@L1)\nreorder([@L2, @L0])", "LoopNotSerial"},
      {kMatmul, "vectorize(@L1)\nreorder([@L2, @L1])", "LoopNotSerial"},
      {kMatmul, "reorder([])", "LoopListEmpty"},
      {kMatmul, "reorder([@L0, @L9])", "LoopNotFound"},
      {kMatmul, "reorder([@L0, @L1, @L0])", "LoopNamedTwice"},
      {kChain, "reorder([@L0, @L1])", "LoopsNotNested"},
      {kScan, "reorder([@L1, @L0])", "BlockOrderFixed"},
      {kOpaque, "reorder([@L1, @L0])", "BlockOrderFixed"},
      {kCollision, "reorder([@L1, @L0])", "BlockOrderFixed"},
      {kCarried, "reorder([@L1, @L0])", "BlockOrderFixed"},
      {kSoftmax, "reverse_compute_at(@B3, @L4)\nreorder([@L5, @L4])", "LoopsNotNested"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("parallel and vectorized loops touch disjoint elements") {
  const Case cases[] = {
      {kMatmul, "parallel(@L0)", ""},
      {kMatmul, "parallel(@L1)", ""},
      {kMatmul, "vectorize(@L1)", ""},
      {kMatmul, "fuse([@L0, @L1])\nparallel(@L3)", ""},
      {kMatmul, "split(@L0, [-1, 5])\nparallel(@L3)\nvectorize(@L4)", ""},
      {kMatmul,
       "split(@L0, [4, 4])\nsplit(@L1, [4, 4])\nreorder([@L3, @L5, @L4, @L6])\n"
       "fuse([@L3, @L5])\nparallel(@L7)\nvectorize(@L6)",
       ""},
      {kMatmul, "unroll(@L2)", ""},
      {kTwoBlocks, "parallel(@L0)\nvectorize(@L1)", ""},
      {kCollision, "parallel(@L1)", ""},
      {kMatmul, "parallel(@L2)", "BlocksDepend"},
      {kMatmul, "vectorize(@L2)", "BlocksDepend"},
      {kMatmul, "fuse([@L1, @L2])\nparallel(@L3)", "BlocksDepend"},
      {kCollision, "parallel(@L0)", "BlocksDepend"},
      {kCarried, "parallel(@L0)", "BlocksDepend"},
      {kOpaque, "parallel(@L0)", "BlocksDepend"},
      {kMatmul, "parallel(@L0)\nparallel(@L1)", "LoopNestedParallel"},
      {kMatmul, "parallel(@L1)\nparallel(@L0)", "LoopNestedParallel"},
      {kMatmul, "parallel(@L1)\nvectorize(@L0)", "LoopNestedParallel"},
      {kMatmul, "vectorize(@L0)\nparallel(@L1)", "LoopNestedParallel"},
      {kMatmul, "parallel(@L0)\nunroll(@L0)", "LoopNotSerial"},
      {kMatmul, "parallel(@L8)", "LoopNotFound"},
      {kMatmul, "unroll(@L8)", "LoopNotFound"},
      {kMatmul, "unroll(@L1)\nunroll(@L1)", "LoopNotSerial"},
      {kMatmul, "bind(@L0, \"block.x\")\nunroll(@L0)\nunroll(@L0)", "LoopNotSerial"},
      {kMatmul, "vectorize(@L1)\nunroll(@L1)", "LoopNotSerial"},
      {kMatmul, "bind(@L0, \"block.x\")\nunroll(@L0)", ""},
      {kMatmul, "bind(@L0, \"block.x\")\nvectorize(@L0)", "LoopNotSerial"},
      {kMatmul, "bind(@L0, \"block.x\")\nparallel(@L0)", "LoopNotSerial"},
      {kStoreInLoop, "vectorize(@L0)", "LoopHoldsStatement"},
  };
  for (const Case& c : cases) check(c);
}

}  // namespace
}  // namespace prunerc::testing
