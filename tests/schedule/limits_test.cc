// Programs at the edge of what primitives take: tile parameters, huge extents, conditions, odd
// guards.
#include "tests/schedule/apply.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

constexpr std::string_view kParametric = R"(
program parametric(X: f32[8]) -> (Y: f32[8]) {
  param t0
  param t1
  tiles 8 perfect [$0, $1] max 0
  for i in $0 @L0 { for j in $1 @L1 {
    block "Y" @B0 [v: S(8) = i*$1 + j] { Y[v] = X[v] }
  } }
})";

constexpr std::string_view kHuge = R"(
program huge(X: f32[1]) -> (Y: f32[2000000, 2000000]) {
  for i in 2000000 @L0 { for j in 2000000 @L1 {
    block "Y" @B0 [vi: S(2000000) = i, vj: S(2000000) = j] { Y[vi, vj] = X[0] }
  } }
})";

constexpr std::string_view kUnderIf = R"(
program under_if(X: f32[8]) -> (Y: f32[8]) {
  buffer T: f32[8] global
  for i in 8 @L0 { if i < 9 { block "T" @B0 [v: S(8) = i] { T[v] = X[v] } } }
  for i in 8 @L1 { block "Y" @B1 [v: S(8) = i] { Y[v] = T[v] } }
})";

// Two of four partial sums have nothing to add where k0 is 0.
constexpr std::string_view kLateStart = R"(
program late_start(X: f32[3, 12]) -> (Y: f32[3]) {
  for i in 3 @L0 { for k0 in 3 @L1 { for k1 in 4 @L2 {
    block "Y" @B0 [vi: S(3) = i, vk: R(12) = k0*4 + k1] where k1 < 2 {
      init { Y[vi] = 0f32 }
      Y[vi] = Y[vi] + X[vi, vk]
  } } } }
})";

TEST_CASE("programs with tile parameters are refused") {
  check_rejected(kParametric, "split(@L0, [2, 2])", "ParamBase");
  check_rejected(kParametric, "fuse([@L0, @L1])", "ParamBase");
  check_rejected(kParametric, "reorder([@L1, @L0])", "ParamBase");
  check_rejected(kParametric, "vectorize(@L1)", "ParamBase");
  check_rejected(kParametric, "sample_perfect_tile(@L0, 2, 0) -> v0, v1 = [2, 2]", "ParamBase");
}

TEST_CASE("fusing beyond the largest extent is refused") {
  check_rejected(kHuge, "fuse([@L0, @L1])", "FuseExtentRange");
}

TEST_CASE("blocks under conditions are not moved") {
  check_rejected(kUnderIf, "compute_inline(@B0)", "BlockUnderIf");
  check_rejected(kUnderIf, "compute_at(@B0, @L1)", "BlockUnderIf");
  check_rejected(kUnderIf, "reverse_compute_at(@B1, @L0)", "LoopHoldsStatement");
  check_rejected(kUnderIf, "cache_write(@B0, 0, \"local\")", "BlockUnderIf");
  check_steps(kUnderIf, "split(@L0, [2, 4])\nunroll(@L3)");
}

// Each of `num` blocks squares what the one before has made.
std::string squares(int num) {
  std::string buffers, blocks, before = "X";
  for (int i = 0; i < num; ++i) {
    const std::string n = std::to_string(i);
    const std::string name = i + 1 < num ? "T" + n : "Y";
    if (i + 1 < num) buffers += "buffer T" + n + ": f32[2] global ";
    blocks += "for a" + n + " in 2 @L" + n + " { block \"b\" @B" + n + " [v: S(2) = a" + n +
              "] { " + name + "[v] = " + before + "[v]*" + before + "[v] } } ";
    before = name;
  }
  return "program squares(X: f32[2]) -> (Y: f32[2]) { " + buffers + blocks + "}";
}

TEST_CASE("expressions do not double without an end") {
  std::string forwards, backwards;
  for (int i = 0; i < 12; ++i) {
    forwards += "compute_inline(@B" + std::to_string(i) + ")\n";
    backwards += "reverse_compute_inline(@B" + std::to_string(i + 1) + ")\n";
  }
  check_rejected(squares(14), forwards, "BlockNotSimple");
  check_rejected(squares(14), backwards, "BlockNotSimple");
  check_steps(squares(4), forwards.substr(0, forwards.find("compute_inline(@B3)")));
}

TEST_CASE("a guard that keeps partial results from starting is refused") {
  check_rejected(kLateStart, "rfactor(@L2, 1)", "GuardMixed");
  check_steps(kLateStart, "rfactor(@L1, 1)");
}

}  // namespace
}  // namespace prunerc::testing
