// The reference semantics on programs small enough to check by hand.
#include "ir/interp/interpreter.h"

#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <cmath>

namespace prunerc::ir {
namespace {

using testing::interpret_or_die;
using testing::parse_or_die;

// The value of `expression` over the scalar x.
Tensor evaluate(const std::string& type, const std::string& expression, double x,
                const std::string& result) {
  const Program program = parse_or_die("program p(x: " + type + ") -> (y: " + result +
                                       ") {\n y[] = " + expression + "\n}");
  Tensor input(*dtype_from_string(type), {});
  input.set(0, x);
  return interpret_or_die(program, {input})[0];
}

TEST_CASE("integer operations wrap and divide towards minus infinity") {
  CHECK(evaluate("i8", "x[] + 100i8", 100, "i8").get(0) == -56);
  CHECK(evaluate("u8", "x[] - 1u8", 0, "u8").get(0) == 255);
  CHECK(evaluate("i32", "x[] * x[]", 65536, "i32").get(0) == 0);
  CHECK(evaluate("i32", "x[] // 4i32", -7, "i32").get(0) == -2);
  CHECK(evaluate("i32", "x[] % 4i32", -7, "i32").get(0) == 1);
  CHECK(evaluate("i32", "x[] % -4i32", 7, "i32").get(0) == -1);
  CHECK(evaluate("i8", "x[] // -1i8", -128, "i8").get(0) == -128);
  CHECK(evaluate("i8", "abs(x[])", -128, "i8").get(0) == -128);
}

TEST_CASE("each float operation is rounded to its type") {
  const double third = evaluate("f32", "1f32 / x[]", 3, "f32").get(0);
  CHECK(third == static_cast<double>(1.0F / 3.0F));
  CHECK(evaluate("f16", "x[] + 1f16", 2048, "f16").get(0) == 2048);  // ties to even
  CHECK(evaluate("bf16", "x[] * 1.0078125bf16", 1.0078125, "bf16").get(0) == 1.015625);
  CHECK(evaluate("f64", "1f64 / x[]", 3, "f64").get(0) == 1.0 / 3.0);
  CHECK(std::isinf(evaluate("f16", "x[] * x[]", 300, "f16").get(0)));
  // (1 + 2^-12)^2 - 1: a product rounded on its own would lose the last term.
  CHECK(evaluate("f32", "fma(x[], x[], -1f32)", 1 + 0x1p-12, "f32").get(0) == 0x1p-11 + 0x1p-24);
  CHECK(evaluate("f32", "x[]*x[] - 1f32", 1 + 0x1p-12, "f32").get(0) == 0x1p-11);
  // The products are the middle of two numbers; an f64 cannot hold the last sum.
  CHECK(evaluate("f16", "fma(3f16, 683f16, x[])", 0x1p-14, "f16").get(0) == 2050);
  CHECK(evaluate("bf16", "fma(7bf16, 37bf16, x[])", -0x1p-20, "bf16").get(0) == 258);
  CHECK(evaluate("bf16", "fma(7bf16, 37bf16, x[])", -0x1p-100, "bf16").get(0) == 258);
}

TEST_CASE("casts saturate, wrap or round") {
  CHECK(evaluate("f32", "i8(x[])", 200.7, "i8").get(0) == 127);
  CHECK(evaluate("f32", "i8(x[])", -3.9, "i8").get(0) == -3);
  CHECK(evaluate("f32", "u8(x[])", -3.9, "u8").get(0) == 0);
  CHECK(evaluate("f32", "i32(x[])", std::nan(""), "i32").get(0) == 0);
  CHECK(evaluate("i32", "i8(x[])", 200, "i8").get(0) == -56);
  CHECK(evaluate("i64", "f32(x[])", 16777217, "f32").get(0) == 16777216);
  CHECK(evaluate("f32", "bool(x[])", 0.25, "bool").get(0) == 1);
  CHECK(evaluate("i32", "bool(x[])", 0, "bool").get(0) == 0);
  CHECK(evaluate("bool", "f32(x[])", 1, "f32").get(0) == 1);
}

TEST_CASE("intrinsics have their usual values") {
  CHECK(evaluate("f64", "exp(x[])", 1, "f64").get(0) == std::exp(1.0));
  CHECK(evaluate("f64", "rsqrt(x[])", 4, "f64").get(0) == 0.5);
  CHECK(evaluate("f64", "sigmoid(x[])", 0, "f64").get(0) == 0.5);
  CHECK(evaluate("f32", "round(x[])", 2.5, "f32").get(0) == 2);
  CHECK(evaluate("f32", "round(x[])", 3.5, "f32").get(0) == 4);
  CHECK(evaluate("f32", "floor(x[])", -0.5, "f32").get(0) == -1);
  CHECK(evaluate("f32", "ceil(x[])", -0.5, "f32").get(0) == 0);
  CHECK(evaluate("f64", "pow(x[], 3f64)", 2, "f64").get(0) == 8);
  CHECK(evaluate("f64", "erf(x[])", 0.5, "f64").get(0) == std::erf(0.5));
}

TEST_CASE("select, and, or evaluate only what they need") {
  CHECK(evaluate("i32", "select(x[] == 0i32, 5i32, 1i32 // x[])", 0, "i32").get(0) == 5);
  CHECK(evaluate("i32", "i32(x[] != 0i32 && 1i32 // x[] == 1i32)", 0, "i32").get(0) == 0);
  CHECK(evaluate("i32", "i32(x[] == 0i32 || 1i32 // x[] == 1i32)", 0, "i32").get(0) == 1);
}

TEST_CASE("init runs in the instance whose reduction iterations are all zero") {
  // The reduction loops are outside, so every element is initialised once, before its first update.
  const Program program = parse_or_die(R"(
program p(A: f32[2, 3, 2]) -> (C: f32[2]) {
  for k in 3 {
    for l in 2 {
      for i in 2 {
        block "sum" [v: S(2) = i, r: R(3) = k, q: R(2) = l] {
          init { C[v] = 100f32 }
          C[v] = C[v] + A[v, r, q]
        }
      }
    }
  }
})");
  const Tensor input = tensor_from(DType::kF32, {2, 3, 2}, [](int64_t i) { return double(i); });
  const Tensor output = interpret_or_die(program, {input})[0];
  CHECK(output.get(0) == 100 + 0 + 1 + 2 + 3 + 4 + 5);
  CHECK(output.get(1) == 100 + 6 + 7 + 8 + 9 + 10 + 11);
}

TEST_CASE("a guard keeps an instance and its init from running") {
  const Program program = parse_or_die(R"(
program p() -> (C: f32[3]) {
  for i in 2 { for j in 2 {
    block "fill" [v: S(3) = i*2 + j] where i*2 + j < 3 { C[v] = f32(v) }
  } }
})");
  const Tensor output = interpret_or_die(program, {})[0];
  CHECK(output == tensor_from(DType::kF32, {3}, [](int64_t i) { return double(i); }));
}

TEST_CASE("an allocated buffer is empty at each entry") {
  const char* const body = R"(
program p() -> (C: f32[2]) {
  buffer T: f32[1] local
  for i in 2 {
    alloc T {
      if i == 0 { T[0] = 1f32 }
      C[i] = T[0]
    }
  }
})";
  CHECK_DIAG(interpret(parse_or_die(body), {}), InterpUninitialised);
}

TEST_CASE("parameters are given as values and must be as many as there are") {
  const Program program = parse_or_die(R"(
program p() -> (C: i64[6]) {
  param t0
  param t1
  tiles 6 perfect [$0, $1] max 0
  for i in $0 { for j in $1 { C[i*$1 + j] = i*10 + j } }
})");
  const std::vector<int64_t> params = {2, 3};
  InterpretOptions options;
  options.params = params;
  const Result<std::vector<Tensor>> outputs = interpret(program, {}, options);
  REQUIRE_OK(outputs);
  CHECK((*outputs)[0].get_int(5) == 12);
  CHECK_DIAG(interpret(program, {}), InterpParams);
}

TEST_CASE("a result that depends on the order of a parallel loop is seen by running it backwards") {
  const Program racy = parse_or_die(R"(
program p() -> (C: i64[1]) {
  for i in 4 parallel { C[0] = i }
})");
  InterpretOptions backward;
  backward.parallel_order = ParallelOrder::kBackward;
  const Tensor forward_result = interpret_or_die(racy, {})[0];
  const Result<std::vector<Tensor>> backward_result = interpret(racy, {}, backward);
  REQUIRE_OK(backward_result);
  CHECK(forward_result.get_int(0) == 3);
  CHECK((*backward_result)[0].get_int(0) == 0);
}

TEST_CASE("inputs of the wrong type, shape or number are refused") {
  const Program program = parse_or_die("program p(A: f32[2]) -> (C: f32[1]) { C[0] = A[1] }");
  CHECK_DIAG(interpret(program, {}), InterpInput);
  CHECK_DIAG(interpret(program, std::vector<Tensor>{Tensor(DType::kF32, {3})}), InterpInput);
  CHECK_DIAG(interpret(program, std::vector<Tensor>{Tensor(DType::kF64, {2})}), InterpInput);
  CHECK_DIAG(interpret(program, std::vector<Tensor>(2, Tensor(DType::kF32, {2}))), InterpInput);
}

TEST_CASE("shapes whose size overflows are refused before memory is taken") {
  const Program program = parse_or_die(
      "program p() -> (C: f32[4294967296, 4294967296, 4294967296]) { C[0, 0, 0] = 1f32 }");
  CHECK_DIAG(interpret(program, {}), InterpTooLarge);
}

}  // namespace
}  // namespace prunerc::ir
