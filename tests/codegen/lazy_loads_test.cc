// Loads behind conditions of expressions: those that run anyway need no mask.
#include "ir/printer.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

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

// As ONNX's operators are written: NaN if any operand is.
constexpr const char* kMaxOfTwo =
    "select(max(Z[vj], X[vj]) != max(Z[vj], X[vj]), X[vj], max(X[vj], Z[vj]))";

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
  CHECK(num_masked_loads(lanes(kMaxOfTwo)) == 0);
  CHECK(num_masked_loads(lanes("select(X[vj] < 0f32, Z[vj], Z[vj] + X[vj])")) == 0);
  CHECK(num_masked_loads(positions(16)) == 0);
}

TEST_CASE("a load that conditions hide wherever it stands keeps its mask") {
  CHECK(num_masked_loads(lanes("select(X[vj] < 0f32, Z[vj], X[vj])")) > 0);
  CHECK(num_masked_loads(
            lanes("select(X[vj] < 0f32, select(X[vj] < -1f32, Z[vj], 0f32), Z[vj] + X[vj])")) > 0);
  // Another element than the one that is loaded anyway.
  CHECK(num_masked_loads(lanes("Z[vj] + select(X[vj] < 0f32, Z[vj + 1], 0f32)")) > 0);
}

TEST_CASE("values are the same without those masks") {
  for (const int64_t n : {1, 13, 16, 37}) {
    INFO(n);
    CHECK(compare_with_interpreter(positions(n), positions(n), 1) == "");
    for (const char* value :
         {"select(X[vj] < 0f32, X[vj] * 3f32, X[vj])", "Z[vj] + select(X[vj] < 0f32, Z[vj], X[vj])",
          "select(X[vj] < 0f32, Z[vj], X[vj])", "select(X[vj] < 0f32, Z[vj], Z[vj] + X[vj])",
          "Z[vj] + select(X[vj] < 0f32, Z[vj + 1], 0f32)"}) {
      INFO(value);
      CHECK(compare_with_interpreter(lanes(value, n), lanes(value, n), 2) == "");
    }
  }
}

TEST_CASE("vectors of what is no number give none") {
  for (const int64_t n : {16, 37}) {
    Tensor x(DType::kF32, {n}), z(DType::kF32, {n + 1});
    for (int64_t i = 0; i < n + 1; ++i) {
      if (i < n) x.set(i, i % 3 == 0 ? NAN : static_cast<double>(i - 8));
      z.set(i, i % 4 == 1 ? NAN : 3.0);
    }
    for (const std::string value :
         {"max(0f32, X[vj])", "min(1f32, max(-1f32, X[vj]))", kMaxOfTwo}) {
      INFO(value << ", " << n);
      const Result<std::vector<Tensor>> y = compile_and_run(lanes(value, n), {x, z});
      REQUIRE_OK(y);
      const bool is_of_two = value == kMaxOfTwo;
      for (int64_t i = 0; i < n; ++i) {
        INFO(i);
        const bool is_nan = std::isnan(x.get(i)) || (is_of_two && std::isnan(z.get(i)));
        CHECK(std::isnan((*y)[0].get(i)) == is_nan);
        if (!is_nan && is_of_two) CHECK((*y)[0].get(i) == std::max(x.get(i), 3.0));
      }
    }
  }
}

}  // namespace
}  // namespace prunerc
