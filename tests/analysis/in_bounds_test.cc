// Accesses that stay inside of their buffers for all data, and those that do not.
#include "ir/analysis/in_bounds.h"

#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::ir {
namespace {

using testing::parse_or_die;

// One block over i in 0..64 that stores to C[vi].
Program program(const std::string& value, const std::string& index = "vi",
                const std::string& where = "") {
  return parse_or_die(R"(program p(A: f32[64], B: f32[64], n: i64[64]) -> (C: f32[64]) {
    for i in 64 @L0 { block "C" @B0 [vi: S(64) = i] )" +
                      where + " { C[" + index + "] = " + value + " } } }");
}

void accepts(const Program& p) {
  const std::optional<LooseAccess> found = find_loose_access(p);
  INFO((found ? found->what : ""));
  CHECK_FALSE(found.has_value());
  CHECK(verify_in_bounds(p).ok());
}

void refuses(const Program& p, const std::string& why, Proof proof = Proof::kUnknown) {
  const std::optional<LooseAccess> found = find_loose_access(p);
  REQUIRE(found.has_value());
  INFO(found->what);
  CHECK(found->what.find(why) != std::string::npos);
  CHECK(found->proof == proof);
  CHECK_DIAG(verify_in_bounds(p), ProgramInvalid);
}

TEST_CASE("affine subscripts are decided") {
  accepts(program("A[vi] + A[63 - vi]"));
  refuses(program("A[vi + 1]"), "leaves 0 <= i < 64", Proof::kNo);
  refuses(program("A[vi - 1]"), "dimension 0 of 'A'", Proof::kNo);
  refuses(program("A[vi]", "vi + 1"), "of 'C'", Proof::kNo);
  accepts(program("A[(vi * 7) % 64]"));
}

TEST_CASE("a subscript that data shifts is refused: some data leads outside") {
  refuses(program("A[vi + select(B[vi] < 5f32, 1, 0)]"), "needs a condition around the access");
  accepts(program("A[max(0, min(63, vi + select(B[vi] < 5f32, 1, 0)))]"));
}

TEST_CASE("a gather needs a condition, or a clamp") {
  refuses(program("A[n[vi]]"), "needs a condition around the access");
  accepts(program("select(0 <= n[vi] && n[vi] < 64, A[n[vi]], 0f32)"));
  accepts(program("A[min(max(n[vi], 0), 63)]"));
  accepts(program("A[n[vi] % 64]"));
  refuses(program("select(n[vi] < 64, A[n[vi]], 0f32)"), "index n[vi]");
  refuses(program("select(0 <= n[vi] && n[vi] < 65, A[n[vi]], 0f32)"), "index n[vi]");
  refuses(program("A[select(0 <= n[vi] && n[vi] < 64, 0, n[vi])]"), "needs a condition");
}

TEST_CASE("conditions count where they stand, and only there") {
  accepts(program("select(vi < 63, A[vi + 1], 0f32)"));
  accepts(program("select(vi == 63, 0f32, A[vi + 1])"));
  accepts(program("select(vi < 63 && A[vi + 1] < 1f32, 1f32, 0f32)"));
  accepts(program("select(vi == 63 || A[vi + 1] < 1f32, 1f32, 0f32)"));
  refuses(program("select(A[vi + 1] < 1f32 && vi < 63, 1f32, 0f32)"), "leaves", Proof::kNo);
  refuses(program("select(vi < 63, A[vi + 1], 0f32) + A[vi + 1]"), "leaves", Proof::kNo);
}

TEST_CASE("a guard over loops holds for what its block's variables are bound to") {
  accepts(program("A[vi + 1]", "vi", "where i < 63"));
  refuses(program("A[vi + 1]", "vi", "where i < 64"), "leaves", Proof::kNo);
}

TEST_CASE("a binding stays within its variable's extent") {
  const auto tiled = [](const std::string& where) {
    return parse_or_die(R"(program p(A: f32[50]) -> (B: f32[50]) {
      for o in 4 @L0 { for i in 16 @L1 {
        block "B" @B0 [v: S(50) = o*16 + i] )" +
                        where + " { B[v] = A[v] } } } }");
  };
  accepts(tiled("where o*16 + i < 50"));
  refuses(tiled(""), "what 'v' is bound to", Proof::kNo);
}

TEST_CASE("an if on data that its own body may change proves nothing") {
  const auto inside = [](const std::string& buffer) {
    return parse_or_die(R"(program p(A: f32[8], n: i64[8]) -> (m: i64[8], C: f32[8]) {
      for i in 8 @L0 { block "m" @B0 [v: S(8) = i] { m[v] = n[v] } }
      for i in 8 @L1 { block "C" @B1 [v: S(8) = i] {
        if 0 <= )" + buffer +
                        "[v] && " + buffer + "[v] < 8 { m[v] = 99 C[v] = A[" + buffer +
                        "[v]] } } } }");
  };
  accepts(inside("n"));
  refuses(inside("m"), "index m[v]");
}

TEST_CASE("a guard on data that its own block may change proves nothing") {
  const auto guarded = [](const std::string& element) {
    return parse_or_die(R"(program p(A: f32[8], n: i64[8]) -> (m: i64[8], C: f32[8]) {
      for i in 8 @L0 { block "m" @B0 [v: S(8) = i] { m[v] = n[v] } }
      for i in 8 @L1 { block "C" @B1 [v: S(8) = i] where 0 <= )" +
                        element + " && " + element + " < 8 { m[0] = 99 C[v] = A[" + element +
                        "] } } }");
  };
  accepts(guarded("n[0]"));
  refuses(guarded("m[0]"), "index m[0]");
  // The parts that are about loops stay.
  accepts(parse_or_die(R"(program p(A: f32[8], n: i64[8]) -> (m: i64[8], C: f32[8]) {
    for i in 8 @L0 { block "m" @B0 [v: S(8) = i] { m[v] = n[v] } }
    for i in 9 @L1 { block "C" @B1 [v: S(8) = i] where i < 8 && m[0] < 3 { C[v] = A[v] } } })"));
}

}  // namespace
}  // namespace prunerc::ir
