// loop_partition, merge, unit loops, order of block variables, thread axes.
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

// T[j] needs elements that the first loop writes later.
constexpr std::string_view kAhead = R"(
program ahead(X: f32[8]) -> (Y: f32[8]) {
  buffer T: f32[9] global
  for i in 9 @L2 { block "P" @B2 [v: S(9) = i] { T[v] = 0f32 } }
  for i in 8 @L0 { block "T" @B0 [v: S(8) = i] { T[v] = X[v] } }
  for j in 8 @L1 { block "Y" @B1 [v: S(8) = j] { Y[v] = T[v + 1] } }
})";

// Y[j] needs what the first loop has written an iteration earlier.
constexpr std::string_view kBehind = R"(
program behind(X: f32[8]) -> (Y: f32[8]) {
  buffer T: f32[8] global
  for i in 8 @L0 { block "T" @B0 [v: S(8) = i] { T[v] = X[v] + 1f32 } }
  for j in 8 @L1 { block "Y" @B1 [v: S(8) = j] { Y[v] = T[v] + select(1 <= v, T[v - 1], 0f32) } }
})";

constexpr std::string_view kThree = R"(
program three(X: f32[8, 4]) -> (A: f32[8, 4], B: f32[8, 4], C: f32[8, 4]) {
  for i in 8 @L0 { for k in 4 @L1 { block "A" @B0 [v: S(8) = i, w: S(4) = k] { A[v, w] = X[v, w] } } }
  for i in 8 @L2 { for k in 4 @L3 { block "B" @B1 [v: S(8) = i, w: S(4) = k] { B[v, w] = A[v, 3 - w] } } }
  for i in 8 @L4 { for k in 4 @L5 { block "C" @B2 [v: S(8) = i, w: S(4) = k] { C[v, w] = B[v, w] + A[v, w] } } }
})";

// The loops share a scratch element, which the second overwrites.
constexpr std::string_view kScratch = R"(
program scratch(X: f32[8]) -> (Y: f32[8], Z: f32[8]) {
  buffer T: f32[1] global
  for i in 8 @L0 {
    block "P" @B0 [v: S(8) = i] { T[0] = X[v] }
    block "Y" @B1 [v: S(8) = i] { Y[v] = T[0] + 1f32 }
  }
  for i in 8 @L1 {
    block "Q" @B2 [v: S(8) = i] { T[0] = X[v]*2f32 }
    block "Z" @B3 [v: S(8) = i] { Z[v] = T[0] + 1f32 }
  }
})";

// Declared spatial, but all instances write one element.
constexpr std::string_view kScatter = R"(
program scatter(X: f32[8]) -> (Y: f32[4]) {
  for i in 8 @L0 { block "Y" @B0 [v: S(8) = i] { Y[v*v % 4] = X[v] } }
  for i in 4 @L1 { block "Z" @B1 [v: S(4) = i] { Y[v] = X[v] } }
})";

// Row sums: each thread has T of its row to itself, as long as the rows stand in one loop of
// threads.
constexpr std::string_view kOwnRows = R"(
program p(A: f32[4, 6]) -> (B: f32[4, 6]) {
  buffer T: f32[6] global
  for i in 4 @L0 { for j in 6 @L1 {
    block "T" @B0 [v: S(6) = j] { T[v] = A[0, v] }
    block "B" @B1 [vi: S(4) = i, vj: S(6) = j] { B[vi, vj] = T[vj] + A[vi, vj] }
  } }
})";

TEST_CASE(
    "loop_partition refuses to let copies of a concurrent loop share what was each iteration's "
    "own") {
  check_rejected(kOwnRows, "reorder([@L1, @L0])\nparallel(@L0)\nloop_partition(@L1, [2, 4])",
                 "BlocksDepend");
}

TEST_CASE("loop_partition cuts an iteration range") {
  const Case cases[] = {
      {kMatmul, "loop_partition(@L0, [4, 12])", ""},
      {kMatmul, "loop_partition(@L0, [1, -1, 2])", ""},
      {kMatmul, "loop_partition(@L2, [5, -1])", ""},
      {kMatmul, "loop_partition(@L1, [16])", ""},
      {kMatmul, "loop_partition(@L2, [5, -1])\nsplit(@L3, [-1, 2])\nunroll(@L4)", ""},
      {kMatmul, "split(@L2, [-1, 5])\nloop_partition(@L3, [6, 1])", ""},
      {kChain, "loop_partition(@L1, [3, -1])\nloop_partition(@L4, [2, -1])", ""},
      {kMatmul, "loop_partition(@L9, [4, 12])", "LoopNotFound"},
      {kMatmul, "loop_partition(@L0, [])", "PartitionSizes"},
      {kMatmul, "loop_partition(@L0, [4, 11])", "PartitionSizes"},
      {kMatmul, "loop_partition(@L0, [4, 13])", "PartitionSizes"},
      {kMatmul, "loop_partition(@L0, [0, 16])", "PartitionSizes"},
      {kMatmul, "loop_partition(@L0, [-1, -1])", "PartitionSizes"},
      {kMatmul, "loop_partition(@L0, [16, -1])", "PartitionSizes"},
      {kMatmul, "parallel(@L0)\nloop_partition(@L0, [4, 12])", "LoopNotSerial"},
      {kMatmul, "annotate_loop(@L0, \"x\", 1)\nloop_partition(@L0, [4, 12])", "LoopHasAttr"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("partitions of partitions end") {
  const std::string_view wide = R"(
    program wide(X: f32[1024]) -> (Y: f32[1024], Z: f32[1024], U: f32[1024], V: f32[1024]) {
      for i in 1024 @L0 {
        block "Y" @B0 [v: S(1024) = i] { Y[v] = X[v] }
        block "Z" @B1 [v: S(1024) = i] { Z[v] = X[v] }
        block "U" @B2 [v: S(1024) = i] { U[v] = X[v] }
        block "V" @B3 [v: S(1024) = i] { V[v] = X[v] }
      }
    })";
  std::string sizes = "[1";
  for (int i = 0; i < 250; ++i) sizes += ", 1";
  check_rejected(wide, "loop_partition(@L0, " + sizes + ", -1])", "CandidateTooLarge");
}

TEST_CASE("merge joins loops that follow each other") {
  const Case cases[] = {
      {kChain, "merge([@L0, @L1])", ""},
      {kChain, "merge([@L0, @L1, @L2])", ""},
      {kChain, "merge([@L1])", ""},
      // T would live in one iteration, which does not hold what the one before wrote.
      {kBehind, "merge([@L0, @L1])", "MergeDepends"},
      {kThree, "merge([@L0, @L2])", ""},
      {kThree, "merge([@L0, @L2, @L4])", ""},
      {kThree, "merge([@L2, @L4])\nmerge([@L3, @L5])", ""},
      {kSoftmax, "merge([@L0, @L2])\nmerge([@L8, @L4])", ""},
      {kChain, "merge([])", "LoopListEmpty"},
      {kChain, "merge([@L0, @L7])", "LoopNotFound"},
      {kChain, "merge([@L0, @L2])", "MergeShape"},
      {kChain, "merge([@L1, @L0])", "MergeShape"},
      {kStencil, "merge([@L0, @L1])", "MergeShape"},
      {kMatmul, "merge([@L0, @L1])", "MergeShape"},
      {kChain, "unroll(@L1)\nmerge([@L0, @L1])", "LoopNotSerial"},
      {kThree, "merge([@L0, @L2])\nmerge([@L1, @L3])", "MergeDepends"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("hole: merge without dependences") {
  check_rejected(kAhead, "merge([@L0, @L1])", "MergeDepends");
  check_rejected(kScratch, "merge([@L0, @L1])", "MergeDepends");
  check_rejected(kScatter, "split(@L0, [2, 4])\nadd_unit_loop(@L1)\nmerge([@L2, @L4])",
                 "MergeShape");
  check_rejected(kScatter, "split(@L0, [4, 2])\nmerge([@L2, @L1])", "MergeDepends");
}

TEST_CASE("unit loops and the order of block variables") {
  const Case cases[] = {
      {kMatmul, "add_unit_loop(@L0)", ""},
      {kMatmul, "add_unit_loop(@L2)\nfuse([@L3, @L2])", ""},
      {kMatmul, "add_unit_loop_block(@B0)\nvectorize(@L1)", ""},
      {kDenseRelu, "add_unit_loop_block(@B1)\nreverse_compute_at(@B1, @L1)", ""},
      {kMatmul, "reorder_block_iter_var(@B0, [2, 0, 1])", ""},
      {kMatmul, "reorder_block_iter_var(@B0, [1, 0, 2])\nsplit(@L2, [4, 8])\nrfactor(@L4, 2)", ""},
      {kChain, "split(@L1, [-1, 4])\nadd_unit_loop(@L4)", ""},
      {kMatmul, "parallel(@L0)\nadd_unit_loop(@L1)", ""},
      {kChain, "compute_at(@B1, @L2)\nadd_unit_loop_block(@B1)", ""},
      {kMatmul, "add_unit_loop_block(@B0)\nadd_unit_loop_block(@B0)", ""},
      {kMatmul, "decompose_reduction(@B0, @L2)\nadd_unit_loop_block(@B1)", ""},
      {kMatmul, "add_unit_loop(@L8)", "LoopNotFound"},
      {kMatmul, "split(@L0, [4, 4])\nadd_unit_loop(@L0)", "LoopNotFound"},
      {kMatmul, "add_unit_loop(@L0)\nadd_unit_loop(@L4)", "LoopNotFound"},
      {kMatmul, "add_unit_loop_block(@B8)", "BlockNotFound"},
      {kChain, "compute_inline(@B0)\nadd_unit_loop_block(@B0)", "BlockNotFound"},
      {kChain, "compute_inline(@B1)\nadd_unit_loop_block(@B1)", "BlockNotFound"},
      {kMatmul, "reorder_block_iter_var(@B0, [0, 1])", "PermutationInvalid"},
      {kMatmul, "reorder_block_iter_var(@B0, [0, 1, 1])", "PermutationInvalid"},
      {kMatmul, "reorder_block_iter_var(@B0, [0, 1, 3])", "PermutationInvalid"},
      {kMatmul, "reorder_block_iter_var(@B0, [0, -1, 2])", "PermutationInvalid"},
      {kMatmul, "reorder_block_iter_var(@B4, [0, 1, 2])", "BlockNotFound"},
  };
  for (const Case& c : cases) check(c);
}

constexpr std::string_view kShared = R"(
program shared_tile(X: f32[8, 4]) -> (Y: f32[8, 4]) {
  buffer T: f32[4] shared
  for i in 8 @L0 {
    for k in 4 @L1 { block "T" @B0 [v: S(8) = i, w: S(4) = k] { T[w] = X[v, w] } }
    for k in 4 @L2 { block "Y" @B1 [v: S(8) = i, w: S(4) = k] { Y[v, w] = T[3 - w] } }
  }
})";

TEST_CASE("bind gives loops to axes of a kernel launch") {
  const Case cases[] = {
      {kMatmul, "bind(@L0, \"block.x\")\nbind(@L1, \"thread.x\")", ""},
      {kMatmul, "bind(@L0, \"block.y\")\nbind(@L1, \"vthread.x\")\nunroll(@L2)", ""},
      {kMatmul,
       "split(@L1, [4, 4])\nbind(@L0, \"block.x\")\nbind(@L3, \"thread.y\")\nvectorize(@L4)", ""},
      {kMatmul, "bind(@L2, \"thread.x\")", ""},
      {kMatmul, "split(@L2, [4, 8])\nbind(@L0, \"block.x\")\nbind(@L4, \"thread.z\")", ""},
      {kRowSum, "split(@L1, [-1, 7])\nbind(@L3, \"thread.x\")\nbind(@L0, \"block.x\")", ""},
      {kRowSum,
       "split(@L1, [4, 16])\nreorder([@L3, @L2])\nbind(@L3, \"thread.x\")\n"
       "rfactor(@L2, 0)",
       ""},
      {kShared, "bind(@L0, \"block.x\")\nbind(@L1, \"thread.x\")\nbind(@L2, \"thread.x\")", ""},
      {kDenseRelu,
       "bind(@L0, \"block.x\")\nreverse_compute_at(@B1, @L0)\nbind(@L6, \"thread.x\")\n"
       "bind(@L1, \"thread.x\")",
       ""},
      {kMatmul, "bind(@L0, \"thread.w\")", "ThreadAxisUnknown"},
      {kMatmul, "bind(@L0, \"parallel\")", "ThreadAxisUnknown"},
      {kMatmul, "bind(@L9, \"block.x\")", "LoopNotFound"},
      {kMatmul, "bind(@L0, \"block.x\")\nbind(@L1, \"thread.x\")\nbind(@L1, \"thread.y\")", ""},
      {kMatmul, "bind(@L2, \"thread.x\")\nbind(@L2, \"thread.y\")\nunroll(@L2)", ""},
      {kMatmul, "bind(@L0, \"thread.x\")\nunroll(@L0)\nbind(@L1, \"thread.x\")", ""},
      {kMatmul, "bind(@L2, \"thread.x\")\nbind(@L2, \"block.x\")", "CrossThreadReduction"},
      {kMatmul, "bind(@L0, \"block.x\")\nbind(@L1, \"thread.x\")\nbind(@L1, \"block.x\")",
       "LoopNestedParallel"},
      {kMatmul, "bind(@L0, \"thread.x\")\nbind(@L1, \"thread.y\")\nbind(@L1, \"block.x\")",
       "LoopNestedParallel"},
      {kMatmul, "unroll(@L0)\nbind(@L0, \"block.x\")", "LoopNotSerial"},
      {kMatmul, "bind(@L2, \"block.x\")", "CrossThreadReduction"},
      {kMatmul, "bind(@L2, \"vthread.x\")", "CrossThreadReduction"},
      {kMatmul, "fuse([@L1, @L2])\nbind(@L3, \"thread.x\")", "CrossThreadReduction"},
      {kMatmul, "bind(@L0, \"thread.x\")\nbind(@L1, \"block.x\")", "LoopNestedParallel"},
      {kMatmul, "parallel(@L0)\nbind(@L1, \"thread.x\")", "LoopNestedParallel"},
      {kMatmul, "bind(@L1, \"thread.x\")\nparallel(@L0)", "LoopNestedParallel"},
      {kMatmul, "bind(@L0, \"block.x\")\nparallel(@L1)", "LoopNestedParallel"},
      {kMatmul, "vectorize(@L1)\nbind(@L2, \"thread.x\")", "LoopNestedParallel"},
      {kMatmul, "bind(@L1, \"thread.x\")\nvectorize(@L0)", "LoopNestedParallel"},
      {kShared, "bind(@L0, \"thread.x\")", "BlocksDepend"},
      {kShared,
       "set_scope(@B0, 0, \"local\")\nbind(@L0, \"thread.x\")\nset_scope(@B0, 0, \"shared\")",
       "BlocksDepend"},
  };
  for (const Case& c : cases) check(c);
  check_steps(kShared, "set_scope(@B0, 0, \"local\")\nbind(@L0, \"thread.x\")");
}

// A reduction that no known operation explains must keep its order.
constexpr std::string_view kDifference = R"(
program difference(X: f32[4, 8]) -> (Y: f32[4]) {
  for i in 4 @L0 { for k in 8 @L1 {
    block "Y" @B0 [vi: S(4) = i, vk: R(8) = k] {
      init { Y[vi] = 0f32 }
      Y[vi] = X[vi, vk] - Y[vi]
  } } }
})";

// The second block sees the sum grow.
constexpr std::string_view kPrefix = R"(
program prefix(X: f32[4, 8]) -> (Y: f32[4, 8]) {
  buffer S_: f32[4] global
  for i in 4 @L0 { for k in 8 @L1 {
    block "S" @B0 [vi: S(4) = i, vk: R(8) = k] {
      init { S_[vi] = 0f32 }
      S_[vi] = S_[vi] + X[vi, vk]
    }
    block "Y" @B1 [vi: S(4) = i, vk: S(8) = k] { Y[vi, vk] = S_[vi] }
  } }
})";

TEST_CASE("threads combine a reduction only if any order will do") {
  check_rejected(kDifference, "bind(@L1, \"thread.x\")", "BlockOrderFixed");
  check_rejected(kPrefix, "bind(@L1, \"thread.x\")", "BlocksDepend");
  check_steps(kPrefix, "bind(@L0, \"thread.x\")");
}

TEST_CASE("hole: bind and parallel without an affine map") {
  check_rejected(kScatter, "bind(@L0, \"thread.x\")", "BlocksDepend");
  check_rejected(kScatter, "parallel(@L0)", "BlocksDepend");
  check_rejected(kScatter, "vectorize(@L0)", "BlocksDepend");
}

TEST_CASE("hole: nested binds of one thread axis with different extents") {
  check_rejected(kMatmul, "split(@L0, [4, 4])\nbind(@L3, \"thread.x\")\nbind(@L1, \"thread.x\")",
                 "LoopNestedParallel");
  check_rejected(kShared,
                 "bind(@L0, \"block.x\")\nbind(@L1, \"thread.x\")\nsplit(@L2, [2, 2])\n"
                 "bind(@L3, \"thread.x\")",
                 "ThreadAxisExtent");
  // Two kernels: each has its own launch.
  check_steps(kDenseRelu, "bind(@L0, \"block.x\")\nbind(@L4, \"block.x\")");
  check_rejected(kThree,
                 "split(@L3, [2, 2])\nbind(@L1, \"thread.x\")\nbind(@L6, \"thread.x\")\n"
                 "merge([@L0, @L2])\nbind(@L8, \"block.x\")",
                 "ThreadAxisExtent");
}

}  // namespace
}  // namespace prunerc::testing
