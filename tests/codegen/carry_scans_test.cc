// Running sums and their kin: what is carried, what is not, and that values are the same.
#include "codegen/lower/passes.h"
#include "codegen/pipeline.h"
#include "ir/printer.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <string>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

// T[i, j] of the value, along j, `rows` rows at a time; rows beyond 10 are cut off.
std::string scan(const std::string& value, int rows = 4, const std::string& at = "vi, vj") {
  return fmt::format(R"(
program p(X: f32[10, 13]) -> (T: f32[10, {4}]) {{
  for i_0 in {0} @L0 {{ for j in 13 @L1 {{ for i_1 in {1} @L2 unrolled {{
    block "T" @B0 [vi: S(10) = i_0*{1} + i_1, vj: O(13) = j] where i_0*{1} + i_1 < 10 {{
      T[{2}] = {3} }} }} }} }} }})",
                     (10 + rows - 1) / rows, rows, at, value, at == "vi, vj" ? 13 : 14);
}

std::string lowered(const std::string& text, bool carries = true) {
  const std::string_view disabled[] = {"carry_scans"};
  codegen::PipelineOptions options;
  if (!carries) options.disabled = disabled;
  const Result<Program> out =
      codegen::lower_cpu(parse_or_die(text), *target_from_string("cpu"), options);
  REQUIRE_OK(out);
  return print(*out);
}

const char* const kSum = "select(1 <= vj, T[vi, vj - 1], 0f32) + X[vi, vj]";

bool is_carried(const std::string& text) {
  return lowered(text).find("T_carried") != std::string::npos;
}

TEST_CASE("a running sum is carried in registers, with tails and without") {
  for (const int rows : {1, 2, 4, 5, 8}) CHECK(is_carried(scan(kSum, rows)));
  CHECK(is_carried(scan("max(select(1 <= vj, T[vi, vj - 1], f32.ninf), X[vi, vj])")));
  CHECK(is_carried(scan("select(1 <= vj, T[vi, vj - 1], 1f32) * X[vi, vj] + 2f32")));
  CHECK(is_carried(scan("select(1 <= vj, T[vi, vj - 1], f32(vj + vi)) + X[vi, vj]")));
  const std::string text = lowered(scan(kSum, 5));
  INFO(text);
  CHECK(text.find("j - 1") == std::string::npos);
  CHECK(lowered(scan(kSum, 5), false).find("j - 1") != std::string::npos);
}

TEST_CASE("what else reads the row, or begins elsewhere, reads memory") {
  // Two elements before, the one before twice, and not the first one.
  CHECK_FALSE(is_carried(scan("select(2 <= vj, T[vi, vj - 2], 0f32) + X[vi, vj]")));
  CHECK_FALSE(is_carried(
      scan("select(1 <= vj, T[vi, vj - 1], 0f32) + select(1 <= vj, T[vi, vj - 1], 0f32)")));
  CHECK_FALSE(is_carried(scan("select(2 <= vj, T[vi, vj - 1], 0f32) + X[vi, vj]")));
  CHECK_FALSE(is_carried(scan("select(1 <= vj, T[vi, vj - 1], X[vi, 0]) + X[vi, vj]")));
  // The element before another one.
  CHECK_FALSE(is_carried(scan(kSum, 4, "vi, vj + 1")));
  // Copies of the tile that meet, and lanes that run in step.
  CHECK_FALSE(is_carried(R"(program p(X: f32[4, 8]) -> (T: f32[11]) {
    for j in 8 @L0 { for i in 4 @L1 unrolled {
      block "T" @B0 [vi: O(4) = i, vj: O(8) = j] {
        T[vi + vj] = select(1 <= vj, T[vi + vj - 1], 0f32) + X[vi, vj] } } } })"));
  CHECK_FALSE(is_carried(R"(program p(X: f32[16, 13]) -> (T: f32[16, 13]) {
    for i in 16 @L0 vectorized { for j in 13 @L1 {
      block "T" @B0 [vi: S(16) = i, vj: O(13) = j] {
        T[vi, vj] = select(1 <= vj, T[vi, vj - 1], 0f32) + X[vi, vj] } } } })"));
  // More than registers hold.
  CHECK_FALSE(is_carried(R"(program p(X: f32[1024, 13]) -> (T: f32[1024, 13]) {
    for j in 13 @L0 { for i in 1024 @L1 vectorized {
      block "T" @B0 [vi: S(1024) = i, vj: O(13) = j] {
        T[vi, vj] = select(1 <= vj, T[vi, vj - 1], 0f32) + X[vi, vj] } } } })"));
}

TEST_CASE("values are the same with and without carried elements") {
  for (const std::string& value :
       {std::string(kSum), std::string("max(select(1 <= vj, T[vi, vj - 1], f32.ninf), X[vi, vj])"),
        std::string("select(1 <= vj, T[vi, vj - 1], 1f32) * 2f32 - X[vi, vj]")}) {
    for (const int rows : {1, 4, 5}) {
      const Program program = parse_or_die(scan(value, rows));
      const Result<Program> out = codegen::lower_cpu(program, *target_from_string("cpu"));
      REQUIRE_OK(out);
      INFO(print(*out));
      check_same_result(program, *out, 1);
      CHECK(compare_with_interpreter(program, program, 2) == "");
    }
  }
  const Program row = parse_or_die(R"(program p(X: f32[13]) -> (T: f32[13]) {
    for j in 13 @L0 { block "T" @B0 [vj: O(13) = j] {
      T[vj] = select(1 <= vj, T[vj - 1], 0f32) + X[vj] } } })");
  CHECK(is_carried(print(row)));
  CHECK(compare_with_interpreter(row, row, 4) == "");
  // Along rows, vectors of columns.
  const Program columns = parse_or_die(R"(program p(X: f32[9, 32]) -> (T: f32[9, 32]) {
    for j_0 in 2 @L0 { for i in 9 @L1 { for j_1 in 16 @L2 vectorized {
      block "T" @B0 [vi: O(9) = i, vj: S(32) = j_0*16 + j_1] {
        T[vi, vj] = select(1 <= vi, T[vi - 1, vj], 0f32) + X[vi, vj] } } } } })");
  CHECK(is_carried(print(columns)));
  CHECK(compare_with_interpreter(columns, columns, 3) == "");
}

}  // namespace
}  // namespace prunerc
