// compute_at and reverse_compute_at.
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

// Y is written by two blocks; T's two halves come from two blocks as well.
constexpr std::string_view kHalves = R"(
program halves(X: f32[8]) -> (Y: f32[8]) {
  buffer T: f32[8] global
  for i in 4 @L0 { block "T0" @B0 [v: S(4) = i] { T[v] = X[v] } }
  for i in 4 @L1 { block "T1" @B1 [v: S(4) = i] { T[v + 4] = X[v + 4]*2f32 } }
  for i in 8 @L2 { block "Y" @B2 [v: S(8) = i] { Y[v] = T[v] } }
})";

// The guard keeps the producer away from the last two elements, which nobody reads.
constexpr std::string_view kPartial = R"(
program partial(X: f32[10]) -> (Y: f32[8]) {
  buffer T: f32[10] global
  for i in 10 @L0 { block "T" @B0 [v: S(10) = i] where i < 8 { T[v] = X[v] } }
  for i in 8 @L1 { block "Y" @B1 [v: S(8) = i] { Y[v] = T[v] } }
})";

// Transposed reading, and a scalar that every instance reads.
constexpr std::string_view kTransposed = R"(
program transposed(X: f32[6, 8], A: f32[4]) -> (Y: f32[8, 6]) {
  buffer T: f32[6, 8] global
  buffer Z: f32 global
  for k in 4 @L0 { block "Z" @B0 [vk: R(4) = k] { init { Z[] = 0f32 } Z[] = Z[] + A[vk] } }
  for i in 6 @L1 { for j in 8 @L2 {
    block "T" @B1 [vi: S(6) = i, vj: S(8) = j] { T[vi, vj] = X[vi, vj] + Z[] }
  } }
  for i in 8 @L3 { for j in 6 @L4 {
    block "Y" @B2 [vi: S(8) = i, vj: S(6) = j] { Y[vi, vj] = T[vj, vi]*2f32 }
  } }
})";

constexpr std::string_view kNested = R"(
program nested(X: f32[4, 4]) -> (Y: f32[4, 4]) {
  buffer T: f32[4, 4] global
  for i in 4 @L0 { block "T" @B0 [vi: S(4) = i] {
    reads X[vi, 0 +: 4]
    writes T[vi, 0 +: 4]
    for j in 4 @L1 { block "inner" @B1 [vj: S(4) = j] {
      reads X[vi, vj]
      writes T[vi, vj]
      T[vi, vj] = X[vi, vj]
    } }
  } }
  for i in 4 @L2 { for j in 4 @L3 {
    block "Y" @B2 [vi: S(4) = i, vj: S(4) = j] { Y[vi, vj] = T[vi, vj] }
  } }
})";

// The producer's block makes a row at a time.
constexpr std::string_view kRows = R"(
program rows(X: f32[6, 4]) -> (Y: f32[6, 4]) {
  buffer T: f32[6, 4] global
  for i in 6 @L0 { block "T" @B0 [vi: S(6) = i] {
    reads X[vi, 0 +: 4]
    writes T[vi, 0 +: 4]
    for j in 4 @L1 { T[vi, j] = X[vi, j]*2f32 }
  } }
  for i in 6 @L2 { for j in 4 @L3 {
    block "Y" @B1 [vi: S(6) = i, vj: S(4) = j] { Y[vi, vj] = T[vi, vj] + 1f32 }
  } }
})";

// It declares a row and makes part of it.
constexpr std::string_view kPartOfRows = R"(
program part(X: f32[6, 4]) -> (Y: f32[6, 3]) {
  buffer T: f32[6, 4] global
  for i in 6 @L0 { block "T" @B0 [vi: S(6) = i] {
    reads X[vi, 0 +: 4]
    writes T[vi, 0 +: 4]
    for j in 3 @L1 { T[vi, j] = X[vi, j]*2f32 }
  } }
  for i in 6 @L2 { for j in 3 @L3 {
    block "Y" @B1 [vi: S(6) = i, vj: S(3) = j] { Y[vi, vj] = T[vi, vj] + 1f32 }
  } }
})";

TEST_CASE("blocks that write a row at a time") {
  const Case cases[] = {
      {kRows, "compute_at(@B0, @L2)\nparallel(@L2)", ""},
      {kRows, "compute_at(@B0, @L3)", ""},
      {kRows, "split(@L2, [-1, 4])\ncompute_at(@B0, @L4)", ""},
      {kRows, "parallel(@L0)\nsplit(@L1, [2, 2])", ""},
      {kRows, "reverse_compute_at(@B1, @L0)", ""},
      {kRows, "cache_write(@B0, 0, \"local\")\nreverse_compute_at(@B2, @L0)", ""},
      {kPartOfRows, "reverse_compute_at(@B1, @L0)", "RegionNotCovered"},
      {kPartOfRows, "cache_write(@B0, 0, \"local\")", "RegionNotSolved"},
      {kRows, "compute_inline(@B0)", "BlockNotSimple"},
      {kRows, "reorder([@L1, @L0])", "LoopsNotNested"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("compute_at makes what one iteration of the loop needs") {
  const Case cases[] = {
      {kChain, "compute_at(@B1, @L2)", ""},
      {kChain, "compute_at(@B1, @L2)\ncompute_at(@B0, @L2)", ""},
      {kChain, "split(@L2, [5, 2])\ncompute_at(@B1, @L3)", ""},
      {kChain, "split(@L2, [-1, 4])\ncompute_at(@B1, @L3)\ncompute_at(@B0, @L3)", ""},
      {kChain, "split(@L2, [-1, 4])\ncompute_at(@B1, @L4)\ncompute_at(@B0, @L3)", ""},
      {kChain, "split(@L2, [5, 2])\ncompute_at(@B1, @L3)\nparallel(@L3)", ""},
      {kStencil, "compute_at(@B0, @L1)", ""},
      {kStencil, "split(@L1, [4, 4])\ncompute_at(@B0, @L2)", ""},
      {kStencil, "split(@L1, [-1, 5])\ncompute_at(@B0, @L2)", ""},
      {kStencil, "split(@L1, [4, 4])\ncompute_at(@B0, @L2)\nparallel(@L2)", ""},
      {kDenseRelu, "compute_at(@B0, @L3)", ""},
      {kDenseRelu, "compute_at(@B0, @L4)", ""},
      {kDenseRelu,
       "split(@L3, [-1, 3])\nsplit(@L4, [-1, 5])\nreorder([@L5, @L7, @L6, @L8])\n"
       "compute_at(@B0, @L7)",
       ""},
      {kConv, "compute_at(@B0, @L3)", ""},
      {kConv, "compute_at(@B0, @L4)", ""},
      {kConv, "compute_at(@B0, @L6)", ""},
      {kConv,
       "split(@L4, [4, 2])\nsplit(@L5, [2, 4])\nreorder([@L9, @L11, @L10, @L12])\n"
       "compute_at(@B0, @L11)",
       ""},
      {kTransposed, "split(@L3, [4, 2])\ncompute_at(@B1, @L5)", ""},
      {kTransposed, "compute_at(@B1, @L4)\ncompute_at(@B0, @L4)", ""},
      {kTransposed, "parallel(@L3)\ncompute_at(@B1, @L4)\ncompute_at(@B0, @L4)", ""},
      {kSoftmax, "compute_at(@B2, @L6)\ncompute_at(@B1, @L6)\ncompute_at(@B0, @L6)\nparallel(@L6)",
       ""},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("compute_at under a perfect tile has exactly the tile's loops") {
  const schedule::Schedule s = check_steps(kChain, "split(@L2, [5, 2])\ncompute_at(@B1, @L3)");
  const std::string text = print(s.program());
  CHECK(text.find("for ax0 in 2") != std::string::npos);
  CHECK(text.find("where") == std::string::npos);
}

TEST_CASE("compute_at over a ragged tile is guarded") {
  const schedule::Schedule s = check_steps(kChain, "split(@L2, [-1, 4])\ncompute_at(@B1, @L3)");
  CHECK(print(s.program()).find("where i_0*4 + ax0 < 10") != std::string::npos);
}

TEST_CASE("compute_at says what is wrong") {
  const Case cases[] = {
      {kChain, "compute_at(@B7, @L2)", "BlockNotFound"},
      {kChain, "compute_at(@B1, @L7)", "LoopNotFound"},
      {kChain, "compute_at(@B1, @L1)", "BlockAlreadyInside"},
      {kChain, "compute_at(@B0, @L2)", "BlockConsumerOutside"},
      {kChain, "compute_at(@B2, @L1)", "BufferNotIntermediate"},
      {kChain, "compute_inline(@B1)\ncompute_at(@B2, @L0)", "BufferNotIntermediate"},
      {kHalves, "compute_at(@B0, @L2)", "BufferManyWriters"},
      {kPartial, "compute_at(@B0, @L1)", "BlockNotSimple"},
      {kNested, "compute_at(@B0, @L2)", "BlockNested"},
      {kNested, "compute_at(@B1, @L2)", "BlockNested"},
      {kSoftmax, "compute_at(@B1, @L6)", "BlockConsumerOutside"},
      {kSoftmax, "compute_at(@B0, @L4)", "BlockConsumerOutside"},
      {kSoftmax, "compute_at(@B3, @L0)", "BufferNotIntermediate"},
      {kHalves, "compute_at(@B1, @L2)", "BufferManyWriters"},
      {kStencil, "compute_at(@B1, @L0)", "BufferNotIntermediate"},
      {kStencil, "compute_at(@B0, @L0)", "BlockAlreadyInside"},
      {kConv, "compute_at(@B1, @L0)", "BufferNotIntermediate"},
      {kTransposed, "compute_at(@B0, @L9)", "LoopNotFound"},
      {kDenseRelu, "decompose_reduction(@B0, @L2)\ncompute_at(@B0, @L3)", "BufferManyWriters"},
      {kSoftmax, "reverse_compute_at(@B1, @L0)\ncompute_at(@B0, @L3)", "LoopNotFound"},
      {kSoftmax, "compute_at(@B2, @L7)\ncompute_at(@B3, @L4)", "LoopNotFound"},
  };
  for (const Case& c : cases) check(c);
}

// T's tiles of 4 columns, in a loop of 7 of which the guard cuts off 3: those are the next tile's.
constexpr std::string_view kWideTiles = R"(
program p(X: f32[8]) -> (Y: f32[8]) {
  buffer T: f32[8] global
  for o in 2 @L0 { for i in 7 @L1 {
    block "T" @B0 [vo: S(2) = o, vi: S(4) = i] where i < 4 { T[vo*4 + vi] = X[vo*4 + vi] }
  } }
  for j in 8 @L2 { block "Y" @B1 [v: S(8) = j] { Y[v] = T[v] + 1f32 } }
})";

TEST_CASE("a guard that cuts off another tile's elements leaves a tile unfinished") {
  check_rejected(kWideTiles, "reverse_compute_at(@B1, @L0)", "RegionNotCovered");
}

TEST_CASE("reverse_compute_at consumes what one iteration of the loop has made") {
  const Case cases[] = {
      {kChain, "reverse_compute_at(@B1, @L0)", ""},
      {kChain, "split(@L0, [5, 2])\nreverse_compute_at(@B1, @L3)\nreverse_compute_at(@B2, @L3)",
       ""},
      {kChain, "split(@L0, [-1, 4])\nreverse_compute_at(@B1, @L3)\nreverse_compute_at(@B2, @L3)",
       ""},
      {kDenseRelu, "reverse_compute_at(@B1, @L1)", ""},
      {kDenseRelu, "reverse_compute_at(@B1, @L0)", ""},
      {kDenseRelu,
       "split(@L0, [2, 4])\nsplit(@L1, [4, 4])\nreorder([@L5, @L7, @L2, @L6, @L8])\n"
       "reverse_compute_at(@B1, @L7)\nparallel(@L5)\nvectorize(@L10)",
       ""},
      {kDenseRelu,
       "split(@L0, [-1, 3])\nsplit(@L1, [-1, 5])\nreorder([@L5, @L7, @L2, @L6, @L8])\n"
       "reverse_compute_at(@B1, @L7)\nfuse([@L5, @L7])\nparallel(@L11)",
       ""},
      {kTransposed, "reverse_compute_at(@B2, @L1)", ""},
      {kTransposed, "reverse_compute_at(@B2, @L2)", ""},
      {kSoftmax,
       "reverse_compute_at(@B1, @L0)\nreverse_compute_at(@B2, @L0)\n"
       "reverse_compute_at(@B3, @L0)\nparallel(@L0)",
       ""},
      {kDenseRelu, "parallel(@L0)\nreverse_compute_at(@B1, @L0)", ""},
      {kDenseRelu, "parallel(@L0)\nreverse_compute_at(@B1, @L1)", ""},
      {kDenseRelu, "vectorize(@L1)\nreverse_compute_at(@B1, @L1)", "LoopNotSerial"},
      {kChain, "reverse_compute_at(@B1, @L2)", "BlockNoConsumer"},
      {kChain, "reverse_compute_at(@B2, @L0)", "BlockProducerLate"},
      {kChain, "reverse_compute_at(@B0, @L1)", "BlockNoConsumer"},
      {kDenseRelu, "reverse_compute_at(@B1, @L2)", "ReductionNotFinished"},
      {kDenseRelu,
       "split(@L2, [3, 4])\nreorder([@L5, @L0, @L1, @L6])\n"
       "reverse_compute_at(@B1, @L1)",
       "ReductionNotFinished"},
      {kStencil, "reverse_compute_at(@B1, @L0)", "RegionNotCovered"},
      {kStencil, "split(@L0, [6, 3])\nreverse_compute_at(@B1, @L2)", "RegionNotCovered"},
      {kHalves, "reverse_compute_at(@B2, @L0)", "BlockProducerLate"},
      {kHalves, "reverse_compute_at(@B2, @L1)", "RegionNotCovered"},
      {kSoftmax, "reverse_compute_at(@B1, @L1)", "ReductionNotFinished"},
      {kSoftmax, "reverse_compute_at(@B2, @L3)", "RegionNotCovered"},
      {kNested, "reverse_compute_at(@B2, @L1)", "BlockNested"},
      {kPartial, "reverse_compute_at(@B1, @L5)", "LoopNotFound"},
      {kChain, "reverse_compute_at(@B9, @L0)", "BlockNotFound"},
  };
  for (const Case& c : cases) check(c);
}

}  // namespace
}  // namespace prunerc::testing
