// Loads behind conditions of expressions: those that run anyway need no mask.
#include "ir/printer.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

Program lanes(const std::string& value, int64_t n = 16) {
  return parse_or_die(fmt::format(
      R"(program p(X: f32[{0}], Z: f32[{2}]) -> (Y: f32[{0}]) {{
  for j in {0} @L0 vectorized {{ block "Y" @B0 [vj: S({0}) = j] {{ Y[vj] = {1} }} }} }})",
      n, value, n + 1));
}

// Positions of the largest elements of columns, as argmax is written.
Program positions(int64_t n) {
  return parse_or_die(fmt::format(R"(
program p(X: f32[9, {0}]) -> (I: i64[{0}], V: f32[{0}]) {{
  for r in 9 @L0 {{ for j in {0} @L1 vectorized {{ block "I" @B0 [vj: S({0}) = j, vr: R(9) = r] {{
    init {{ I[vj] = -1 V[vj] = f32.ninf }}
    I[vj] = select(I[vj] < 0 || (V[vj] < X[vr, vj] || X[vr, vj] == V[vj] && vr < I[vj]), vr, I[vj])
    V[vj] = max(V[vj], X[vr, vj]) }} }} }} }})",
                                  n));
}

int num_masked_loads(const Program& program) {
  Target target;
  target.name = "x86-64-v3";
  target.vector_bytes = 32;
  const Result<std::string> text = codegen::emit_cpu(program, target, codegen::EmitKind::kLlvmText);
  REQUIRE_OK(text);
  int found = 0;
  for (std::size_t at = text->find("@llvm.masked.load"); at != std::string::npos;
       at = text->find("@llvm.masked.load", at + 1)) {
    ++found;
  }
  return found;
}

TEST_CASE("a load that its statement, or one beside it, does anyway has no mask") {
  CHECK(num_masked_loads(lanes("select(X[vj] < 0f32, X[vj] * 3f32, X[vj])")) == 0);
  CHECK(num_masked_loads(lanes("Z[vj] + select(X[vj] < 0f32, Z[vj], X[vj])")) == 0);
  CHECK(num_masked_loads(positions(16)) == 0);
}

TEST_CASE("a load that conditions hide wherever it stands keeps its mask") {
  CHECK(num_masked_loads(lanes("select(X[vj] < 0f32, Z[vj], X[vj])")) > 0);
  CHECK(num_masked_loads(lanes("select(X[vj] < 0f32, Z[vj], Z[vj] + X[vj])")) > 0);
  // Another element than the one that is loaded anyway.
  CHECK(num_masked_loads(lanes("Z[vj] + select(X[vj] < 0f32, Z[vj + 1], 0f32)")) > 0);
}

TEST_CASE("values are the same without those masks") {
  for (const int64_t n : {1, 13, 16, 37}) {
    INFO(n);
    CHECK(compare_with_interpreter(positions(n), positions(n), 1) == "");
    for (const char* value :
         {"select(X[vj] < 0f32, X[vj] * 3f32, X[vj])", "Z[vj] + select(X[vj] < 0f32, Z[vj], X[vj])",
          "select(X[vj] < 0f32, Z[vj], X[vj])", "Z[vj] + select(X[vj] < 0f32, Z[vj + 1], 0f32)"}) {
      INFO(value);
      CHECK(compare_with_interpreter(lanes(value, n), lanes(value, n), 2) == "");
    }
  }
}

}  // namespace
}  // namespace prunerc
