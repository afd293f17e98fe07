// Running sums and the like: quadratic reductions that become a step from each element to the next.
#include "ir/printer.h"
#include "tests/schedule/apply.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::testing {
namespace {

// Y[i, j] = op over k of select(condition, value, identity).
std::string running(const std::string& step, const std::string& init = "0f32",
                    const std::string& k = "24") {
  return R"(
program running(X: f32[6, 24], W: f32[24, 24]) -> (Y: f32[6, 24]) {
  for i in 6 @L0 { for j in 24 @L1 { for k in )" +
         k + R"( @L2 {
    block "Y" @B0 [vi: S(6) = i, vj: S(24) = j, vk: R()" +
         k + R"() = k] {
      init { Y[vi, vj] = )" +
         init + " } Y[vi, vj] = " + step + " } } } } }";
}

const std::string kSum = running("Y[vi, vj] + select(vk <= vj, X[vi, vk], 0f32)");
const std::string kBefore = running("Y[vi, vj] + select(vk < vj, X[vi, vk]*2f32, 0f32)");
const std::string kMax =
    running("max(Y[vi, vj], select(vk <= vj, X[vi, vk], f32.ninf))", "f32.ninf");
const std::string kProduct = running("Y[vi, vj]*select(vk <= vj, X[vi, vk], 1f32)", "1f32");
const std::string kColumns = R"(
program columns(X: f32[24, 40]) -> (Y: f32[24, 40]) {
  for j in 24 @L0 { for i in 40 @L1 { for k in 24 @L2 {
    block "Y" @B0 [vj: S(24) = j, vi: S(40) = i, vk: R(24) = k] {
      init { Y[vj, vi] = 0f32 } Y[vj, vi] = Y[vj, vi] + select(vk <= vj, X[vk, vi], 0f32) } } } } })";
// A stage before, and a reader of the running sum.
const std::string kBetween = R"(
program between(X: f32[6, 24]) -> (Z: f32[6, 24]) {
  buffer S: f32[6, 24] global
  buffer Y: f32[6, 24] global
  for i in 6 @L0 { for j in 24 @L1 { block "S" @B0 [vi: S(6) = i, vj: S(24) = j] { S[vi, vj] = X[vi, vj]*X[vi, vj] } } }
  for i in 6 @L2 { for j in 24 @L3 { for k in 24 @L4 {
    block "Y" @B1 [vi: S(6) = i, vj: S(24) = j, vk: R(24) = k] {
      init { Y[vi, vj] = 0f32 } Y[vi, vj] = Y[vi, vj] + select(vk <= vj, S[vi, vk], 0f32) } } } }
  for i in 6 @L5 { for j in 24 @L6 { block "Z" @B2 [vi: S(6) = i, vj: S(24) = j] { Z[vi, vj] = Y[vi, vj] + X[vi, vj] } } } })";

}  // namespace

TEST_CASE("scan") {
  const Case cases[] = {
      {kSum, "scan(@B0)", ""},
      {kBefore, "scan(@B0)", ""},
      {kMax, "scan(@B0)", ""},
      {kProduct, "scan(@B0)", ""},
      {kSum, "parallel(@L0)\nscan(@B0)", ""},
      {kSum, "split(@L0, [-1, 4])\nreorder([@L3, @L1, @L2, @L4])\nunroll(@L4)\nscan(@B0)", ""},
      {kColumns, "scan(@B0)", ""},
      {kColumns,
       "split(@L1, [-1, 8])\nreorder([@L3, @L0, @L2, "
       "@L4])\nvectorize(@L4)\nparallel(@L3)\nscan(@B0)",
       ""},
      {kBetween, "scan(@B1)\ncompute_at(@B1, @L5)", "BlockOrderFixed"},
      {kBetween, "reverse_compute_at(@B2, @L3)\nscan(@B1)", ""},
      {kBetween, "compute_inline(@B0)\nscan(@B1)", ""},
      {running("Y[vi, vj] + select(vk < vj, X[vi, vk], 0f32)", "0f32", "23"), "scan(@B0)", ""},
      {kSum, "scan(@B7)", "BlockNotFound"},
      // Its order is fixed from now on.
      {kSum, "scan(@B0)\nreorder([@L1, @L0])", "BlockOrderFixed"},
      {kSum, "scan(@B0)\nscan(@B0)", "BlockOrderFixed"},
      {kSum, "scan(@B0)\nparallel(@L1)", "BlocksDepend"},
      // Where j or k is no loop of its own, or the sum is cut into parts.
      {kSum, "split(@L1, [4, 6])\nscan(@B0)", "BlockNotSimple"},
      {kSum, "split(@L2, [4, 6])\nscan(@B0)", "BlockNotSimple"},
      {kSum, "reorder([@L2, @L1])\nscan(@B0)", "BlockNotSimple"},
      {kSum, "parallel(@L1)\nscan(@B0)", "LoopNotSerial"},
      {kSum, "decompose_reduction(@B0, @L2)\nscan(@B0)", "BlockNotSimple"},
      // Other reductions.
      {running("Y[vi, vj] + select(vk <= vj, X[vi, vk], 1f32)"), "scan(@B0)", "BlockNotSimple"},
      {running("Y[vi, vj] + select(vj <= vk, X[vi, vk], 0f32)"), "scan(@B0)", "BlockNotSimple"},
      {running("Y[vi, vj] + select(vk <= vi, X[vi, vk], 0f32)"), "scan(@B0)", "BlockNotSimple"},
      {running("Y[vi, vj] + select(vk <= vj, X[vi, vk]*W[vj, vk], 0f32)"), "scan(@B0)",
       "BlockNotSimple"},
      {running("Y[vi, vj] + select(vk <= vj && vj < vk + 5, X[vi, vk], 0f32)"), "scan(@B0)",
       "BlockNotSimple"},
      {running("Y[vi, vj] + X[vi, vk]"), "scan(@B0)", "BlockNotSimple"},
      {running("Y[vi, vj] + select(vk <= vj, X[vi, vk], 0f32)", "1f32"), "scan(@B0)",
       "BlockNotSimple"},
      {running("Y[vi, vj] + select(vk <= vj, X[vi, vk], 0f32)", "0f32", "20"), "scan(@B0)",
       "BlockNotSimple"},
  };
  for (const Case& c : cases) check(c);
}

TEST_CASE("a scan does each update once") {
  const schedule::Schedule s = check_steps(kBefore, "scan(@B0)");
  const std::string text = ir::print(s.program());
  INFO(text);
  CHECK(text.find("for k") == std::string::npos);
  CHECK(text.find("select(1 <= vj, Y[vi, vj - 1] + X[vi, vj - 1]*2f32, 0f32)") !=
        std::string::npos);
  CHECK(text.find("vj: O(24) = j") != std::string::npos);
}

}  // namespace prunerc::testing
