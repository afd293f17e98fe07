// Inlining, caches, storage scopes and reductions.
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

namespace prunerc::testing {
namespace {

constexpr std::string_view kShapes = R"(
program shapes(X: f32[4, 6], Unused: f32[2]) -> (Y: f32[6, 4], Z: f32[4]) {
  buffer T: f32[6, 1, 4] global
  buffer U: f32[4] global
  buffer V: f32[8] global
  for i in 4 @L0 { for j in 6 @L1 {
    block "T" @B0 [vi: S(4) = i, vj: S(6) = j] { T[vj, 0, vi] = X[vi, vj] }
  } }
  for i in 6 @L2 { for j in 4 @L3 {
    block "Y" @B1 [vi: S(6) = i, vj: S(4) = j] { Y[vi, vj] = T[vi, 0, vj]*T[vi, 0, 3 - vj] }
  } }
  for i in 4 @L4 { block "U" @B2 [v: S(4) = i] { U[v] = X[v, 0] } }
  for i in 4 @L5 { block "V" @B3 [v: S(4) = i] { V[v*2] = U[v] } }
  for i in 4 @L6 { block "Z" @B4 [v: S(4) = i] { Z[v] = V[v*2] + U[v] } }
})";

constexpr std::string_view kRewritten = R"(
program rewritten(X: f32[8]) -> (Y: f32[8], Z: f32[8]) {
  buffer T: f32[8] global
  buffer A: f32[8] global
  for i in 8 @L0 { block "A" @B0 [v: S(8) = i] { A[v] = X[v] } }
  for i in 8 @L1 { block "T" @B1 [v: S(8) = i] { T[v] = A[v] } }
  for i in 8 @L2 { block "A2" @B2 [v: S(8) = i] { A[v] = X[v]*2f32 } }
  for i in 8 @L3 { block "Y" @B3 [v: S(8) = i] { Y[v] = T[v] } }
  for i in 8 @L4 { block "Z" @B4 [v: S(8) = i] { Z[v] = A[v] } }
})";

// Prefix sums: T reads what the reduction has so far.
constexpr std::string_view kPrefix = R"(
program prefix(X: f32[8]) -> (Y: f32[8]) {
  buffer A: f32 global
  buffer T: f32[8] global
  for k in 8 @L0 {
    block "A" @B0 [vk: R(8) = k] { init { A[] = 0f32 } A[] = A[] + X[vk] }
    block "T" @B1 [vk: S(8) = k] { T[vk] = A[] }
  }
  for i in 8 @L1 { block "Y" @B2 [v: S(8) = i] { Y[v] = T[v] } }
})";

constexpr std::string_view kMaxFrom5 = R"(
program max_from_5(X: f32[4, 6]) -> (Y: f32[4]) {
  for i in 4 @L0 { for k in 6 @L1 {
    block "Y" @B0 [vi: S(4) = i, vk: R(6) = k] {
      init { Y[vi] = 5f32 }
      Y[vi] = max(Y[vi], X[vi, vk])
  } } }
})";

constexpr std::string_view kIntegers = R"(
program integers(X: i32[4, 12]) -> (Lo: i32[4], Hi: i32[4], P: i32[4]) {
  for i in 4 @L0 { for k in 12 @L1 {
    block "Lo" @B0 [vi: S(4) = i, vk: R(12) = k] {
      init { Lo[vi] = 2147483647i32 } Lo[vi] = min(Lo[vi], X[vi, vk]) } } }
  for i in 4 @L2 { for k in 12 @L3 {
    block "Hi" @B1 [vi: S(4) = i, vk: R(12) = k] {
      init { Hi[vi] = -2147483648i32 } Hi[vi] = max(Hi[vi], X[vi, vk]) } } }
  for i in 4 @L4 { for k in 12 @L5 {
    block "P" @B2 [vi: S(4) = i, vk: R(12) = k] {
      init { P[vi] = 1i32 } P[vi] = X[vi, vk]*P[vi] } } }
})";

TEST_CASE("compute_inline puts the producer's value into its readers") {
  const Case cases[] = {
      {kChain, "compute_inline(@B0)", ""},
      {kChain, "compute_inline(@B1)", ""},
      {kChain, "compute_inline(@B0)\ncompute_inline(@B1)", ""},
      {kChain, "split(@L1, [-1, 4])\ncompute_inline(@B1)", ""},
      {kStencil, "compute_inline(@B0)", ""},
      {kConv, "compute_inline(@B0)", ""},
      {kSoftmax, "compute_inline(@B1)", ""},
      {kShapes, "compute_inline(@B0)\ncompute_inline(@B2)", ""},
      {kChain, "compute_at(@B1, @L2)\ncompute_inline(@B1)", ""},
      {kChain, "compute_inline(@B9)", "BlockNotFound"},
      {kChain, "compute_inline(@B2)", "BufferNotIntermediate"},
      {kSoftmax, "compute_inline(@B0)", "BlockNotSimple"},
      {kDenseRelu, "compute_inline(@B0)", "BlockNotSimple"},
      {kShapes, "compute_inline(@B3)", ""},
      {kRewritten, "compute_inline(@B0)", "BufferManyWriters"},
      {kRewritten, "compute_inline(@B1)", "SourceOverwritten"},
      {kPrefix, "compute_inline(@B1)", "ReductionNotFinished"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("reverse_compute_inline puts the reader's value into its producer") {
  const Case cases[] = {
      {kChain, "reverse_compute_inline(@B2)", ""},
      {kChain, "reverse_compute_inline(@B1)\nreverse_compute_inline(@B2)", ""},
      {kChain, "split(@L1, [-1, 4])\nreverse_compute_inline(@B2)", ""},
      {kDenseRelu, "reverse_compute_inline(@B1)", "BlockNotSimple"},
      {kStencil, "reverse_compute_inline(@B1)", "BlockNotSimple"},
      {kShapes, "reverse_compute_inline(@B1)", "BlockNotSimple"},
      {kSoftmax, "reverse_compute_inline(@B2)", "BlockNotSimple"},
      {kChain, "reverse_compute_inline(@B0)", "BlockNotSimple"},
      {kShapes, "reverse_compute_inline(@B3)", "BlockNotSimple"},
      {kPrefix, "reverse_compute_inline(@B9)", "BlockNotFound"},
      {kPrefix, "reverse_compute_inline(@B2)", ""},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("caches carry final values") {
  const Case cases[] = {
      {kMatmul, "cache_write(@B0, 0, \"local\")", ""},
      {kMatmul, "cache_write(@B0, 0, \"local\")\nreverse_compute_at(@B1, @L1)", ""},
      {kMatmul, "cache_read(@B0, 0, \"shared\")", ""},
      {kMatmul, "cache_read(@B0, 0, \"shared\")\ncompute_at(@B1, @L2)", ""},
      {kMatmul, "split(@L2, [4, 8])\ncache_read(@B0, 1, \"local\")\ncompute_at(@B1, @L3)", ""},
      {kDenseRelu, "cache_write(@B0, 0, \"local\")", ""},
      {kDenseRelu, "cache_read(@B1, 0, \"local\")\ncompute_at(@B2, @L4)", ""},
      {kConv, "compute_inline(@B0)\ncache_read(@B1, 0, \"shared\")\ncompute_at(@B2, @L4)", ""},
      {kMatmul, "cache_write(@B0, 1, \"local\")", "AccessIndexRange"},
      {kMatmul, "cache_write(@B0, -1, \"local\")", "AccessIndexRange"},
      {kChain, "cache_read(@B1, 0, \"shared\")", ""},
      {kMatmul, "cache_read(@B0, 7, \"local\")", "AccessIndexRange"},
      {kMatmul, "cache_write(@B0, 0, \"moon\")", "ScopeUnknown"},
      {kMatmul, "cache_write(@B3, 0, \"local\")", "BlockNotFound"},
      {kShapes, "cache_write(@B3, 0, \"local\")", "RegionNotSolved"},
      {kShapes, "cache_read(@B4, 0, \"local\")", "RegionNotSolved"},
      {kRewritten, "cache_write(@B0, 0, \"local\")", "BufferManyWriters"},
      {kDenseRelu, "reverse_compute_at(@B1, @L1)\ncache_write(@B0, 0, \"local\")",
       "CacheReaderInside"},
      {kDenseRelu, "reverse_compute_at(@B1, @L1)\ncache_read(@B1, 0, \"local\")",
       "BlockProducerLate"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("set_scope moves intermediates only") {
  const schedule::Schedule s = check_steps(kDenseRelu, "set_scope(@B0, 0, \"local\")");
  CHECK(print(s.program()).find("T: f32[8, 16] local") != std::string::npos);
  const Case cases[] = {
      {kDenseRelu, "set_scope(@B1, 0, \"local\")", "BufferNotIntermediate"},
      {kDenseRelu, "set_scope(@B0, 1, \"local\")", "AccessIndexRange"},
      {kDenseRelu, "set_scope(@B0, 0, \"cloud\")", "ScopeUnknown"},
      {kDenseRelu, "set_scope(@B5, 0, \"local\")", "BlockNotFound"},
  };
  for (const Case& c : cases) check(c);
}

// The init reads T, which block @B1 computes inside or in front of the reduction loop @L1.
std::string init_reads(bool inside) {
  const std::string producer = "block \"T\" @B1 [v: S(4) = i] { T[v] = Bias[v] }";
  return "program p(A: f32[4, 6], Bias: f32[4]) -> (C: f32[4]) { buffer T: f32[4] global "
         "for i in 4 @L0 { " +
         (inside ? "" : producer) + " for k in 6 @L1 { " + (inside ? producer : "") +
         " block \"C\" @B0 [vi: S(4) = i, vk: R(6) = k] { init { C[vi] = T[vi] } "
         "C[vi] = C[vi] + A[vi, vk] } } } }";
}

TEST_CASE("decompose_reduction keeps the init behind what writes its operands") {
  check_steps(init_reads(false), "decompose_reduction(@B0, @L1)");
  check_rejected(init_reads(true), "decompose_reduction(@B0, @L1)", "BlockProducerLate");
  check_rejected(init_reads(false), "decompose_reduction(@B0, @L0)", "BlockProducerLate");
}

TEST_CASE("decompose_reduction takes the init out of the loop") {
  const Case cases[] = {
      {kMatmul, "decompose_reduction(@B0, @L2)", ""},
      {kMatmul, "decompose_reduction(@B0, @L1)", ""},
      {kMatmul, "decompose_reduction(@B0, @L0)", ""},
      {kMatmul, "split(@L1, [-1, 5])\nreorder([@L2, @L4])\ndecompose_reduction(@B0, @L2)", ""},
      {kMatmul, "split(@L2, [-1, 7])\nreorder([@L3, @L1])\ndecompose_reduction(@B0, @L3)", ""},
      {kMatmul,
       "split(@L1, [4, 4])\nreorder([@L2, @L4])\nvectorize(@L4)\n"
       "decompose_reduction(@B0, @L2)",
       ""},
      {kMaxFrom5, "decompose_reduction(@B0, @L1)", ""},
      {kSoftmax, "compute_at(@B2, @L6)\ndecompose_reduction(@B2, @L9)", ""},
      {kMatmul, "decompose_reduction(@B0, @L9)", "LoopNotFound"},
      {kMatmul, "decompose_reduction(@B9, @L1)", "BlockNotFound"},
      {kChain, "decompose_reduction(@B0, @L0)", "BlockNoInit"},
      {kDenseRelu, "decompose_reduction(@B0, @L3)", "LoopNotAround"},
      {kMatmul, "split(@L2, [4, 8])\ndecompose_reduction(@B0, @L4)", "ReductionLoopAbove"},
      {kMatmul, "fuse([@L1, @L2])\ndecompose_reduction(@B0, @L3)", "BlockNotSimple"},
      {kPrefix, "decompose_reduction(@B0, @L0)", "CacheReaderInside"},
      {kMatmul, "decompose_reduction(@B0, @L2)\ndecompose_reduction(@B0, @L2)", "BlockNoInit"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("rfactor makes partial results along a loop") {
  const Case cases[] = {
      {kRowSum, "rfactor(@L1, 1)", ""},
      {kRowSum, "rfactor(@L1, 0)", ""},
      {kRowSum, "split(@L1, [-1, 16])\nrfactor(@L3, -1)\nvectorize(@L3)", ""},
      {kRowSum, "split(@L1, [-1, 16])\nrfactor(@L2, 0)\nparallel(@L0)", ""},
      {kRowSum, "split(@L1, [-1, 7])\nrfactor(@L3, 1)", ""},
      {kRowSum, "split(@L1, [-1, 7])\nrfactor(@L2, 1)", ""},
      {kMatmul, "split(@L2, [4, 8])\nreorder([@L3, @L0, @L1])\nrfactor(@L3, 2)\nparallel(@L3)", ""},
      {kIntegers, "rfactor(@L1, 1)\nrfactor(@L3, 0)\nrfactor(@L5, 1)", ""},
      {kIntegers, "split(@L3, [3, 4])\nrfactor(@L7, 1)", ""},
      {kRowSum, "rfactor(@L1, 2)", "AxisRange"},
      {kRowSum, "rfactor(@L1, -3)", "AxisRange"},
      {kRowSum, "rfactor(@L0, 0)", "LoopNotReduction"},
      {kRowSum, "rfactor(@L5, 0)", "LoopNotFound"},
      {kMatmul, "fuse([@L1, @L2])\nrfactor(@L3, 0)", "LoopNotReduction"},
      {kMaxFrom5, "rfactor(@L1, 0)", "ReducerUnknown"},
      {kRowSum, "unroll(@L1)\nrfactor(@L1, 0)", "LoopNotSerial"},
      {kRowSum, "decompose_reduction(@B0, @L1)\nrfactor(@L1, 0)", "BlockNoInit"},
      {kPrefix, "rfactor(@L0, 0)", "LoopNotReduction"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("annotate sets or replaces an attribute") {
  const Case cases[] = {
      {kRowSum, "annotate_block(@B0, \"tiled\", 1)", ""},
      {kRowSum, "annotate_block(@B0, \"tiled\", 1)\nannotate_block(@B0, \"tiled\", 2)", ""},
      {kRowSum, "annotate_loop(@L0, \"unroll\", 16)", ""},
      {kRowSum, "annotate_loop(@L0, \"no key\", 16)", "AttrKey"},
      {kRowSum, "annotate_block(@B0, \"\", 16)", "AttrKey"},
      {kRowSum, "annotate_block(@B0, \"1st\", 16)", "AttrKey"},
      {kRowSum, "annotate_loop(@L9, \"unroll\", 16)", "LoopNotFound"},
      {kRowSum, "annotate_block(@B9, \"unroll\", 16)", "BlockNotFound"},
  };
  for (const Case& c : cases) check(c);
}

}  // namespace
}  // namespace prunerc::testing
