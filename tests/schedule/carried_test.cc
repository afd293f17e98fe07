// What iterations of a loop hand on to later ones, or write again: buffers that are no iteration's
// own, values that are not final, instances that occur twice.
#include "tests/schedule/apply.h"
#include "tests/schedule/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

// Sums of all that there is so far: T starts in the first iteration of @L0 alone.
constexpr std::string_view kRunning = R"(
program running(X: f32[16]) -> (Y: f32[4]) {
  buffer T: f32[1] global
  for i in 4 @L0 {
    for k in 4 @L1 {
      block "T" @B0 [r: R(16) = i*4 + k] { init { T[0] = 0f32 } T[0] = T[0] + X[r] }
    }
    block "Y" @B1 [v: S(4) = i] { Y[v] = T[0] }
  }
})";

// A sum that goes on in the second iteration of @L0.
constexpr std::string_view kGoesOn = R"(
program goes_on(X: f32[8]) -> (Y: f32[2, 3]) {
  buffer T: f32[1] global
  for o in 2 @L0 { for x in 3 @L1 {
    for k in 4 @L2 {
      block "T" @B0 [r: R(8) = o*4 + k] { init { T[0] = 0f32 } T[0] = T[0] + X[r] }
    }
    block "Y" @B1 [a: S(2) = o, v: S(3) = x] { Y[a, v] = T[0] }
  } }
})";

// The same, but each iteration has a sum of its own.
constexpr std::string_view kApart = R"(
program apart(X: f32[4, 4]) -> (Y: f32[4]) {
  buffer T: f32[1] global
  for i in 4 @L0 {
    for k in 4 @L1 {
      block "T" @B0 [r: R(4) = k] { init { T[0] = 0f32 } T[0] = T[0] + X[0, r] }
    }
    block "Y" @B1 [v: S(4) = i] { Y[v] = T[0]*X[v, 0] }
  }
})";

// Each sum has the one before as a factor.
constexpr std::string_view kRecurrence = R"(
program recurrence(X: f32[8, 4]) -> (T: f32[8]) {
  for i in 8 @L0 { for k in 4 @L1 {
    block "T" @B0 [v: S(8) = i, r: R(4) = k] {
      init { T[v] = 1f32 }
      T[v] = T[v] + select(1 <= v, T[v - 1], 0f32)*X[v, r] } } }
})";

TEST_CASE("a reduction reads what others of its buffer have made as any block does") {
  check_rejected(kRecurrence, "parallel(@L0)", "BlocksDepend");
  check_rejected(kRecurrence, "vectorize(@L0)", "BlocksDepend");
  check_rejected(kRecurrence, "reorder([@L1, @L0])", "BlockOrderFixed");
  check_steps(kRecurrence, "unroll(@L1)");
}

TEST_CASE("what a branch may skip is not known to be written") {
  const auto program = [](const std::string& body) {
    return "program p(X: f32[8]) -> (Y: f32[8]) { buffer T: f32[8] global "
           "for i in 8 @L0 { block \"T\" @B0 [v: S(8) = i] { " +
           body +
           " } } "
           "for i in 8 @L1 { block \"Y\" @B1 [v: S(8) = i] { Y[v] = select(v < 4, T[v], 0f32) } } "
           "}";
  };
  const std::string cache = "cache_write(@B0, 0, \"local\")";
  check_steps(program("T[v] = X[v]"), cache);
  check_rejected(program("if v < 4 { T[v] = X[v] }"), cache, "RegionNotSolved");
}

TEST_CASE("a reduction that a loop carries is no iteration's own") {
  const Case cases[] = {
      {kRunning, "parallel(@L0)", "BlocksDepend"},
      {kRunning, "software_pipeline(@L0, [0, 1], [0, 1])", "PipelineOrder"},
      {kRunning, "double_buffer(@B0, 0)", "BlockNotSimple"},
      {kGoesOn, "parallel(@L1)", "BlocksDepend"},
      {kGoesOn, "parallel(@L0)", "BlocksDepend"},
      {kRunning, "software_pipeline(@L0, [0, 0], [0, 1])", ""},
      {kApart, "parallel(@L0)", ""},
      {kApart, "software_pipeline(@L0, [0, 1], [0, 1])", ""},
      {kApart, "double_buffer(@B0, 0)", ""},
  };
  for (const Case& c : cases) check(c);
}

// T[v] = S[0], where `writers` stand before it in a loop over j, and Y = T behind the loop.
std::string through(const std::string& before, const std::string& writers) {
  return "program p(X: f32[4]) -> (Y: f32[4]) { buffer R_: f32[1] global buffer S_: f32[4] global "
         "buffer T: f32[4] global " +
         before + " for j in 4 @L0 { " + writers +
         " block \"T\" @B8 [v: S(4) = j] { T[v] = S_[0] } } "
         "for j in 4 @L1 { block \"Y\" @B9 [v: S(4) = j] { Y[v] = T[v] } } }";
}

TEST_CASE("values are final where every iteration writes the same") {
  const std::string start = "block \"s\" @B0 [v: S(1) = 0] { S_[0] = X[0] }";
  const std::string inline_t = "compute_inline(@B8)";
  const Case cases[] = {
      {through("", start), inline_t, ""},
      // What S is made of differs.
      {through("",
               "block \"r\" @B0 [u: O(4) = j] { R_[0] = X[u] } "
               "block \"s\" @B1 [v: S(1) = 0] { S_[0] = R_[0] }"),
       inline_t, "ReductionNotFinished"},
      // It changes from the third iteration on.
      {through(start, "block \"t\" @B1 [v: S(1) = 0] where 2 <= j { S_[0] = X[1] }"), inline_t,
       "SourceOverwritten"},
      // It doubles in each.
      {through(start, "block \"t\" @B1 [v: S(1) = 0] { S_[0] = S_[0]*2f32 }"), inline_t,
       "SourceOverwritten"},
      // Another block writes the first element last.
      {through("",
               "block \"s\" @B0 [v: S(4) = j] { S_[v] = X[v] } "
               "block \"t\" @B1 [v: S(4) = j] { S_[3 - v] = X[v]*2f32 }"),
       inline_t, "SourceOverwritten"},
  };
  for (const Case& c : cases) check(c);
}

constexpr std::string_view kTwoWriters = R"(
program two(X: f32[4], Z: f32[4]) -> (Y: f32[4]) {
  buffer A: f32[4] global
  buffer S_: f32[4] global
  for j in 4 @L0 {
    block "A" @B0 [v: S(4) = j] { A[v] = X[v]*2f32 }
    block "s" @B1 [v: S(4) = j] { S_[v] = X[v] }
    block "t" @B2 [v: S(4) = j] { S_[3 - v] = Z[v] }
  }
  for j in 4 @L1 { block "Y" @B3 [v: S(4) = j] { Y[v] = A[v] + S_[v] } }
})";

// Rows of prefix sums, which keep their order.
constexpr std::string_view kRows = R"(
program rows(X: f32[4, 8]) -> (Y: f32[4, 8]) {
  buffer T: f32[4, 8] global
  buffer U: f32[4, 8] global
  for i in 4 @L0 {
    for j in 8 @L1 { block "T" @B0 [a: S(4) = i, b: O(8) = j] {
      T[a, b] = select(1 <= b, T[a, b - 1], 0f32) + X[a, b] } }
    for j in 8 @L2 { block "U" @B1 [a: S(4) = i, b: S(8) = j] { U[a, b] = T[a, b]*2f32 } }
  }
  for i in 4 @L3 { for j in 8 @L4 {
    block "Y" @B2 [a: S(4) = i, b: S(8) = j] { Y[a, b] = U[a, b] + 1f32 } } }
})";

constexpr std::string_view kHalos = R"(
program halos(X: f32[18]) -> (Y: f32[16]) {
  buffer T: f32[18] global
  buffer U: f32[17] global
  for i in 18 @L0 { block "T" @B0 [v: S(18) = i] { T[v] = X[v] + 1f32 } }
  for i in 17 @L1 { block "U" @B1 [v: S(17) = i] { U[v] = T[v] + T[v + 1] } }
  for i in 16 @L2 { block "Y" @B2 [v: S(16) = i] { Y[v] = U[v] + U[v + 1] } }
})";

TEST_CASE("a block moves to where what it reads is final") {
  const Case cases[] = {
      {kTwoWriters, "reverse_compute_at(@B3, @L0)", "SourceOverwritten"},
      {kRows, "compute_inline(@B1)", ""},
      {kRows, "reverse_compute_at(@B2, @L0)", ""},
      {kHalos,
       "split(@L2, [4, 4])\ncompute_at(@B1, @L3)\ncompute_at(@B0, @L3)\ncompute_inline(@B1)", ""},
  };
  for (const Case& c : cases) check(c);
}

// U reads what T was an iteration earlier, which is kept for Y alone.
constexpr std::string_view kKept = R"(
program kept(X: f32[8]) -> (Y: f32[8], U: f32[8]) {
  buffer T: f32[8] global
  for i in 8 @L0 {
    block "T" @B0 [v: S(8) = i] { T[v] = X[v]*2f32 }
    block "U" @B1 [v: S(8) = i] { U[v] = select(1 <= v, T[v - 1], 0f32) }
  }
  for i in 8 @L1 { block "Y" @B2 [v: S(8) = i] { Y[v] = T[v] } }
})";

// The same, where nobody needs what is read of T last.
constexpr std::string_view kUnused = R"(
program unused(X: f32[8]) -> (U: f32[8]) {
  buffer T: f32[8] global
  buffer V: f32[8] global
  for i in 8 @L0 {
    block "T" @B0 [v: S(8) = i] { T[v] = X[v]*2f32 }
    block "U" @B1 [v: S(8) = i] { U[v] = select(1 <= v, T[v - 1], 0f32) }
  }
  for i in 8 @L1 { block "V" @B2 [v: S(8) = i] { V[v] = T[v] } }
})";

TEST_CASE("a buffer does not come to live for an iteration whose values others want") {
  const Case cases[] = {
      {kKept, "reverse_compute_at(@B2, @L0)", "RegionNotCovered"},
      {kKept, "split(@L0, [2, 4])\nreverse_compute_at(@B2, @L2)", "RegionNotCovered"},
      {kUnused, "compute_inline(@B2)", "RegionNotCovered"},
      {kRows, "reverse_compute_at(@B1, @L1)", "ReductionNotFinished"},
      {kSoftmax, "merge([@L0, @L2])\nmerge([@L8, @L4])\nmerge([@L9, @L6])", ""},
      {kSoftmax, "reverse_compute_at(@B3, @L4)", ""},
  };
  for (const Case& c : cases) check(c);
}

// A sum over k in 8 of X at `binding`, an expression below 16.
std::string sum_at(const std::string& binding) {
  return "program p(X: f32[16]) -> (Y: f32[1]) { for k in 8 @L0 { block \"Y\" @B0 [r: R(16) = " +
         binding + "] { init { Y[0] = 0f32 } Y[0] = Y[0] + X[r] } } }";
}

TEST_CASE("partial results are of instances that occur once and begin with the loop") {
  check_steps(sum_at("k"), "rfactor(@L0, 0)");
  check_steps(sum_at("k*2"), "rfactor(@L0, 0)");
  check_rejected(sum_at("k // 2"), "rfactor(@L0, 0)", "BlockOrderFixed");
  check_rejected(sum_at("7 - k"), "rfactor(@L0, 0)", "BlockOrderFixed");
  check_rejected(sum_at("k + 4"), "decompose_reduction(@B0, @L0)", "BlockOrderFixed");
}

TEST_CASE("loops of a reduction change places below its outer loops, and where they were fused") {
  const std::string tiles = "split(@L1, [4, 4])\nsplit(@L2, [4, 8])\nreorder([@L3, @L5, @L4])\n";
  const std::string fused = "fuse([@L7, @L8])\nsplit(@L9, [-1, 4])\n";
  const Case cases[] = {
      {kMatmul, tiles + "reorder([@L6, @L4])", ""},
      {kMatmul, "split(@L2, [-1, 7])\nreorder([@L3, @L1])\nreorder([@L4, @L1])", ""},
      {kConv, fused + "reorder([@L10, @L5, @L11])", ""},
      {kConv, fused + "reorder([@L11, @L10])\nreorder([@L11, @L6])", ""},
      {kConv, fused + "rfactor(@L11, 0)", ""},
      // One loop is of rows and of what is summed: the first summand of a row may come late.
      {kMatmul, "fuse([@L1, @L2])\nsplit(@L3, [-1, 5])\nreorder([@L5, @L4])", "BlockOrderFixed"},
  };
  for (const Case& c : cases) check(c);
}

}  // namespace
}  // namespace prunerc::testing
