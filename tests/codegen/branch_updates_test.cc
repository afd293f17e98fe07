// Updates behind conditions: what leaves a tile, what stays, and that values are the same.
#include "codegen/lower/passes.h"
#include "codegen/pipeline.h"
#include "ir/printer.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

// Y[i, j] = op over k of select(condition, A[i, k]*B[k, j], other), vectors along j.
std::string masked(const std::string& condition, const std::string& op = "+",
                   const std::string& other = "0f32") {
  const bool infix = op == "+" || op == "*";
  const std::string value = "select(" + condition + ", A[vi, vk]*B[vk, vj], " + other + ")";
  return "program p(A: f32[7, 9], B: f32[9, 16], Z: i64[9]) -> (Y: f32[7, 16]) { for i in 7 @L0 { "
         "for k in 9 @L2 { for j in 16 @L1 vectorized { block \"Y\" @B0 [vi: S(7) = i, vj: S(16) = "
         "j, "
         "vk: R(9) = k] { init { Y[vi, vj] = " +
         other + " } Y[vi, vj] = " +
         (infix ? "Y[vi, vj] " + op + " " + value : op + "(Y[vi, vj], " + value + ")") +
         " } } } } }";
}

Program lowered(const std::string& text, bool branches) {
  const std::string_view disabled[] = {"branch_updates", "skip_masked"};
  codegen::PipelineOptions options;
  if (!branches) options.disabled = disabled;
  const Result<Program> out =
      codegen::lower_cpu(parse_or_die(text), *target_from_string("cpu"), options);
  REQUIRE_OK(out);
  return *out;
}

bool has_select(const Program& program) {
  return print(program).find("select(") != std::string::npos;
}

TEST_CASE("a sum over a triangle runs over the triangle") {
  const Program program = lowered(masked("vk <= vi"), true);
  INFO(print(program));
  CHECK_FALSE(has_select(program));
  CHECK(print(program).find("if ") == std::string::npos);
  CHECK(print(program).find("for k in i + 1 ") != std::string::npos);
  CHECK(has_select(lowered(masked("vk <= vi"), false)));
}

TEST_CASE("what lanes decide for themselves, data decide, or changes the result stays a select") {
  CHECK(has_select(lowered(masked("vk < vj"), true)));
  CHECK(has_select(lowered(masked("Z[vk] < 1"), true)));
  CHECK(has_select(lowered(masked("vk <= vi", "+", "1f32"), true)));
  const Program part = lowered(masked("vk <= vi && vk < vj"), true);
  INFO(print(part));
  CHECK(print(part).find("for k in i + 1 ") != std::string::npos);
  CHECK(has_select(part));
}

TEST_CASE("values are the same with and without branches") {
  for (const std::string& text :
       {masked("vk <= vi"), masked("vk <= vi && vk < vj"), masked("(vi + vk) % 2 == 0"),
        masked("2*vk + vi % 2 < 5"), masked("vi < 3", "*", "1f32"),
        masked("vi < vk", "max", "f32.ninf")}) {
    const Program program = parse_or_die(text);
    INFO(print(lowered(text, true)));
    check_same_result(program, lowered(text, true), 1);
    REQUIRE(compare_with_interpreter(program, program, 2) == "");
  }
}

}  // namespace
}  // namespace prunerc
