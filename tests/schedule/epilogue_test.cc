// fuse_reduction_epilogue and cache_inplace.
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

// T = reduction of X over k by `join` from `start`; Y[vj, vi] = `value`.
std::string with_epilogue(const std::string& start, const std::string& join,
                          const std::string& value) {
  return R"(
program p(X: f32[6, 9, 4], B: f32[4], C: f32[6, 4]) -> (Y: f32[4, 6]) {
  buffer T: f32[6, 4] global
  for i in 6 @L0 { for j in 4 @L1 { for k in 9 @L2 {
    block "T" @B0 [vi: S(6) = i, vj: S(4) = j, vk: R(9) = k] {
      init { T[vi, vj] = )" +
         start + R"( }
      T[vi, vj] = )" +
         join + R"(
  } } } }
  for i in 6 @L3 { for j in 4 @L4 {
    block "Y" @B1 [vi: S(6) = i, vj: S(4) = j] {
      Y[vj, vi] = )" +
         value + R"(
  } } }
})";
}

const std::string kSum = "T[vi, vj] + X[vi, vk, vj]";
const std::string kMax = "max(T[vi, vj], X[vi, vk, vj])";

// The epilogue sees only a part of T.
constexpr std::string_view kPart = R"(
program part(X: f32[6, 9]) -> (Y: f32[5]) {
  buffer T: f32[6] global
  for i in 6 @L0 { for k in 9 @L1 {
    block "T" @B0 [vi: S(6) = i, vk: R(9) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + X[vi, vk] }
  } }
  for i in 5 @L2 { block "Y" @B1 [vi: S(5) = i] { Y[vi] = T[vi] + 1f32 } }
})";

// The term comes after the reduction.
constexpr std::string_view kLateTerm = R"(
program late(X: f32[6, 9]) -> (Y: f32[6]) {
  buffer T: f32[6] global
  buffer G: f32[6] global
  for i in 6 @L0 { for k in 9 @L1 {
    block "T" @B0 [vi: S(6) = i, vk: R(9) = k] { init { T[vi] = 0f32 } T[vi] = T[vi] + X[vi, vk] }
  } }
  for i in 6 @L2 { block "G" @B2 [vi: S(6) = i] { G[vi] = X[vi, 0] } }
  for i in 6 @L3 { block "Y" @B1 [vi: S(6) = i] { Y[vi] = T[vi] + G[vi] } }
})";

TEST_CASE("fuse_reduction_epilogue lets a reduction start with the epilogue's terms") {
  const std::string fuse = "fuse_reduction_epilogue(@B0, @B1)";
  const Case cases[] = {
      {with_epilogue("0f32", kSum, "T[vi, vj] + B[vj]"), fuse, ""},
      {with_epilogue("0f32", kSum, "B[vj] + T[vi, vj]"), fuse, ""},
      {with_epilogue("1f32", kSum, "C[vi, vj]*2f32 + (T[vi, vj] + B[vj])"), fuse, ""},
      {with_epilogue("f32.ninf", kMax, "max(T[vi, vj], 0f32)"), fuse, ""},
      {with_epilogue("0f32", kSum, "T[vi, vj]"), fuse, ""},
      {with_epilogue("0f32", kSum, "T[vi, vj] + B[vj]"),
       "split(@L2, [-1, 4])\nfuse_reduction_epilogue(@B0, @B1)\ndecompose_reduction(@B0, @L5)", ""},
      {with_epilogue("0f32", kSum, "T[vi, vj] + B[vj]"),
       "reverse_compute_at(@B1, @L0)\nfuse_reduction_epilogue(@B0, @B1)\nparallel(@L0)", ""},
      // Rows that two tasks need, each has made for itself.
      {with_epilogue("0f32", kSum, "T[vi, vj] + B[vj]"),
       "fuse([@L3, @L4])\nsplit(@L5, [-1, 3])\ncompute_at(@B0, @L6)\nparallel(@L6)\n" + fuse,
       "BlocksDepend"},
      {with_epilogue("0f32", kSum, "T[vi, vj]*2f32"), fuse, "EpilogueForm"},
      {with_epilogue("0f32", kSum, "T[vi, vj] - B[vj]"), fuse, "EpilogueForm"},
      {with_epilogue("0f32", kSum, "T[vi, vj] + T[vi, vj]"), fuse, "EpilogueForm"},
      {with_epilogue("f32.ninf", kMax, "T[vi, vj] + B[vj]"), fuse, "EpilogueForm"},
      {with_epilogue("0f32", "X[vi, vk, vj] - T[vi, vj]", "T[vi, vj] + B[vj]"), fuse,
       "ReducerUnknown"},
      {std::string(kPart), fuse, "EpilogueForm"},
      {std::string(kLateTerm), fuse, "BlockProducerLate"},
      {std::string(kDenseRelu), "fuse_reduction_epilogue(@B1, @B0)", "BlockNoInit"},
      {std::string(kMatmul), "fuse_reduction_epilogue(@B0, @B0)", "BufferNotIntermediate"},
      {std::string(kSoftmax), "fuse_reduction_epilogue(@B0, @B3)", "EpilogueForm"},
      {std::string(kMatmul), "fuse_reduction_epilogue(@B0, @B5)", "BlockNotFound"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("hole: clipping inside a reduction") {
  check_rejected(with_epilogue("0f32", kSum, "max(T[vi, vj], 0f32)"),
                 "fuse_reduction_epilogue(@B0, @B1)", "EpilogueForm");
  check_rejected(with_epilogue("0f32", kSum, "min(T[vi, vj] + B[vj], 6f32)"),
                 "fuse_reduction_epilogue(@B0, @B1)", "EpilogueForm");
  check_rejected(kDenseRelu, "fuse_reduction_epilogue(@B0, @B1)", "EpilogueForm");
}

constexpr std::string_view kInplace = R"(
program inplace(X: f32[6, 4]) -> (Y: f32[6, 4]) {
  for i in 6 @L0 { for j in 4 @L1 { block "Y" @B0 [v: S(6) = i, w: S(4) = j] { Y[v, w] = X[v, w] } } }
  for i in 6 @L2 { for j in 4 @L3 {
    block "twice" @B1 [v: S(6) = i, w: S(4) = j] { Y[v, w] = Y[v, w]*2f32 }
  } }
})";

// Not every element is there before.
constexpr std::string_view kHalf = R"(
program half(X: f32[6]) -> (Y: f32[6]) {
  for i in 3 @L0 { block "a" @B0 [v: S(3) = i] { Y[v] = X[v] } }
  for i in 3 @L1 { block "b" @B1 [v: S(3) = i] { Y[v] = Y[v] + 1f32 } }
  for i in 3 @L2 { block "c" @B2 [v: S(3) = i] { Y[v + 3] = X[v] } }
})";

TEST_CASE("cache_inplace works on one copy") {
  const schedule::Schedule s = check_steps(kInplace, "cache_inplace(@B1, 0, \"local\")");
  const std::string text = print(s.program());
  INFO(text);
  CHECK(text.find("Y_local[v_1, w_1] = Y_local[v_1, w_1]*2f32") != std::string::npos);
  const Case cases[] = {
      {std::string(kInplace), "cache_inplace(@B0, 0, \"local\")", "BlockNotSimple"},
      {std::string(kInplace), "cache_inplace(@B1, 1, \"local\")", "AccessIndexRange"},
      {std::string(kInplace), "cache_inplace(@B1, 0, \"moon\")", "ScopeUnknown"},
      {std::string(kInplace), "cache_inplace(@B9, 0, \"local\")", "BlockNotFound"},
      {std::string(kInplace), "merge([@L0, @L2])\ncache_inplace(@B1, 0, \"local\")",
       "CacheReaderInside"},
      {std::string(kHalf), "cache_inplace(@B1, 0, \"local\")", "RegionNotSolved"},
  };
  for (const Case& c : cases) check(c);
}

}  // namespace
}  // namespace prunerc::testing
