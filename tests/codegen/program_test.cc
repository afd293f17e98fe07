// Small programs, each for one thing that emission does: compiled results are the interpreter's.
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/analysis/vectorization.h"
#include "ir/printer.h"
#include "tests/codegen/kernel_run.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <limits>

namespace prunerc {
namespace {

using namespace ir;       // NOLINT: a test
using namespace testing;  // NOLINT: a test

void check_text(const std::string& text, uint64_t seed = 1) {
  const Program program = parse_or_die(text);
  INFO(text);
  CHECK(compare_with_interpreter(program, program, seed) == "");
}

// Y[i] = value(X[i]) with X and Y of `extent` elements, in lanes of `kind`.
std::string map_text(const std::string& from, const std::string& to, int extent,
                     const std::string& value) {
  const std::string n = std::to_string(extent);
  return "program p(X: " + from + "[" + n + "]) -> (Y: " + to + "[" + n + "]) { for i in " + n +
         " @L0 vectorized { block \"Y\" @B0 [v: S(" + n +
         ") = i] { reads X[v] writes Y[v] Y[v] = " + value + " } } }";
}

// Whether a vectorized loop i with this body runs in lanes.
bool runs_in_lanes(const std::string& body) {
  const Program program = parse_or_die(
      "program p(X: f32[16, 2]) -> (Y: f32[4, 4], Q: i64[16]) {"
      " for i in 16 vectorized { " +
      body + " } }");
  return codegen::any_loop(program.root(), [&](const Loop& loop) {
    return loop.loop_kind == LoopKind::kVectorized && codegen::can_vectorize(program, loop);
  });
}

// The result for given inputs, compared with the interpreter bit by bit.
void check_inputs(const std::string& text, const std::vector<Tensor>& inputs) {
  const Program program = parse_or_die(text);
  const Result<std::vector<Tensor>> got = compile_and_run(program, inputs);
  INFO(text);
  REQUIRE_OK(got);
  CHECK(first_difference(interpret_or_die(program, inputs), *got) == "");
}

}  // namespace

TEST_CASE("every extent of a vectorized loop is exact at its ends") {
  for (int extent = 1; extent <= 40; ++extent)
    check_text(map_text("f32", "f32", extent, "X[v] + 1f32"));
  for (int extent : {63, 64, 65, 127, 128, 300, 1000})
    check_text(map_text("i8", "i32", extent, "i32(X[v]) * 3i32"));
}

// Y[i] = X[i * stride + offset] in 16 lanes at a time, the last of them under a mask.
std::string strided_text(const std::string& type, int stride, int extent, int offset) {
  const std::string n = std::to_string(extent);
  const std::string size = std::to_string((extent - 1) * stride + offset + 1);
  return "program p(X: " + type + "[" + size + "]) -> (Y: " + type + "[" + n + "]) { for o in " +
         std::to_string((extent + 15) / 16) +
         " @L0 { for l in 16 @L1 vectorized { block \"Y\" @B0 [v: S(" + n +
         ") = o * 16 + l] where o * 16 + l < " + n + " { Y[v] = X[v * " + std::to_string(stride) +
         " + " + std::to_string(offset) + "] } } } }";
}

TEST_CASE("strided loads read the lanes that run and nothing else") {
  for (const char* type : {"f32", "f64", "i8"}) {
    for (int stride : {2, 3, 4, 5}) {
      for (int extent : {1, 2, 7, 8, 9, 15, 16, 17, 24, 31, 33, 56}) {
        check_text(strided_text(type, stride, extent, stride % 2));
      }
    }
  }
}

TEST_CASE("every pair of types converts as the interpreter does") {
  const double interesting[] = {
      0,     -0.0,  1,          -1,          0.5,        -0.5,          1.5,          2.5,
      127,   128,   -128,       -129,        255,        256,           300.7,        -0.9,
      65504, 65520, 1e10,       -1e10,       3e38,       1e-8,          6e-8,         1e-40,
      1e300, 1e19,  9223372e12, -9223372e12, 2147483647, -2147483648.0, 1.0009765625, 1.00048828125,
      33.33, 0.1,   1e30,       12345.678};
  constexpr DType kTypes[] = {DType::kF64, DType::kF32, DType::kF16, DType::kBF16, DType::kI64,
                              DType::kI32, DType::kI8,  DType::kU8,  DType::kBool};
  const auto count = static_cast<int64_t>(std::size(interesting) + 3);
  for (DType from : kTypes) {
    Tensor x(from, {count});
    for (int64_t i = 0; i < count; ++i) {
      const auto n = static_cast<std::size_t>(i);
      double v = n < std::size(interesting)    ? interesting[n]
                 : n == std::size(interesting) ? std::numeric_limits<double>::infinity()
                                               : -std::numeric_limits<double>::infinity();
      if (i + 1 == count) v = std::numeric_limits<double>::quiet_NaN();
      if (is_float(from)) {
        x.set(i, v);
      } else {
        x.set_int(i, is_bool(from) ? (v > 0 ? 1 : 0) : saturate_to(from, v));
      }
    }
    for (DType to : kTypes) {
      if (is_float(from) && is_float(to)) {
        // The payload of a NaN is not promised; keep it out.
        x.set(count - 1, 1);
      }
      const std::string name(to_string(to));
      check_inputs(
          map_text(std::string(to_string(from)), name, static_cast<int>(count), name + "(X[v])"),
          {x});
    }
  }
}

TEST_CASE("integers wrap, and division and remainder round down") {
  for (const std::string type : {"i64", "i32", "i8", "u8"}) {
    const DType dtype = *dtype_from_string(type);
    Tensor x(dtype, {16}), y(dtype, {16});
    const int64_t a[] = {7, -7, 7,  -7, 0, 100,           -100, 127, min_int(dtype), max_int(dtype),
                         5, -5, 64, 3,  1, min_int(dtype)};
    const int64_t b[] = {2, 2, -2, -2, 3, 7, 7, 127, 3, 10, 5, 5, -64, -4, -1, -1};
    for (int64_t i = 0; i < 16; ++i) {
      x.set_int(i, a[i]);
      y.set_int(i, b[i]);
    }
    for (const std::string value :
         {"X[v] // Y[v]", "X[v] % Y[v]", "X[v] * Y[v] + X[v]", "min(X[v], Y[v])", "max(X[v], Y[v])",
          "abs(X[v])", "select(X[v] < Y[v], X[v], Y[v])", "X[v] - Y[v] * X[v]"}) {
      for (const std::string kind : {"vectorized", ""}) {
        check_inputs(
            "program p(X: " + type + "[16], Y: " + type + "[16]) -> (Z: " + type +
                "[16]) { for i in 16 @L0 " + kind +
                " { block \"Z\" @B0 [v: S(16) = i] { reads X[v], Y[v] writes Z[v] Z[v] = " + value +
                " } } }",
            {x, y});
      }
    }
  }
}

TEST_CASE("what data that are not negative add up to may wrap and be negative") {
  Tensor x(DType::kI64, {4});
  const int64_t values[] = {int64_t{1} << 62, 5, -3, max_int(DType::kI64)};
  for (int64_t i = 0; i < 4; ++i) x.set_int(i, values[i]);
  for (const char* value :
       {"max(X[v], 0) * 3 // 2", "(max(X[v], 0) + max(X[v], 7)) % 5",
        "X[v] % 4611686018427387905 * 3 // 7", "abs(X[v]) // 3", "max(X[v], v) // (v + 1)"}) {
    const std::string lanes = map_text("i64", "i64", 4, value);
    check_inputs(lanes, {x});
    std::string serial = lanes;
    serial.erase(serial.find("vectorized"), 10);
    check_inputs(serial, {x});
  }
  // 3 times that is 2.
  Tensor third(DType::kI64, {1}), y(DType::kF32, {8});
  third.set_int(0, 6148914691236517206);
  for (int64_t i = 0; i < 8; ++i) y.set(i, static_cast<double>(i));
  check_inputs(R"(program p(X: f32[8], I: i64[1]) -> (Y: f32[2]) {
    for i in 2 @L0 vectorized { block "Y" @B0 [v: S(2) = i] {
      Y[v] = select(0 <= (I[0]*3 + v) // 3 && (I[0]*3 + v) // 3 < 8, X[(I[0]*3 + v) // 3], 9f32) } } })",
               {y, third});
}

TEST_CASE("a condition guards the loads behind it, in lanes too") {
  check_text(R"(program p(X: f32[20]) -> (Y: f32[40]) {
    for i in 40 @L0 vectorized { block "Y" @B0 [v: S(40) = i] { reads X[v - 9] writes Y[v]
      Y[v] = select(9 <= v && v < 29, X[v - 9], 3f32) } } })");
  check_text(R"(program p(X: f32[20]) -> (Y: f32[8, 24]) {
    for i in 8 @L1 { for j in 24 @L0 vectorized { block "Y" @B0 [u: S(8) = i, v: S(24) = j] { reads X[u*6 + v] writes Y[u, v]
      Y[u, v] = select(u < 0 || u*6 + v < 20, X[u*6 + v], 0f32) } } } })");
  check_text(R"(program p(X: f32[5]) -> (Y: f32[9]) {
    for i in 9 @L0 { block "Y" @B0 [v: S(9) = i] { reads X[v - 2] writes Y[v]
      Y[v] = select(2 <= v && v < 7, X[v - 2], 1f32) } } })");
}

TEST_CASE("what a condition hides divides no other address") {
  // All places of a block's variable have one expression.
  for (const char* store :
       {"Y[a, b] = select(X[a, b] < 0f32, Z[q], 0f32) + select(0f32 <= X[a, b], Z[q], 0f32)",
        "Y[a, b] = select(X[a, b] < 0f32, Z[q], W[q])",
        "Y[q, b] = select(X[a, b] < 0f32, Z[q], 0f32)"}) {
    const Program program = parse_or_die(
        std::string(R"(program p(X: f32[12, 4], Z: f32[12], W: f32[12]) -> (Y: f32[12, 4]) {
          for i in 12 @L2 { for j in 4 @L3 { block "I" @B1 [a: S(12) = i, b: S(4) = j] { Y[a, b] = 1f32 } } }
          for i in 12 @L0 { for j in 4 @L1 {
            block "Y" @B0 [a: O(12) = i, b: O(4) = j, q: O(12) = i // (j + 1)] { )") +
        store + " } } } }");
    INFO(store);
    for (const int64_t passes : {int64_t{0}, int64_t{-1}}) {
      RunOptions options;
      options.compile.pipeline.max_optional_passes = passes;
      CHECK(compare_with_interpreter(program, program, 1, options) == "");
    }
  }
}

TEST_CASE("a division stays behind the condition that hides it") {
  // What may be hidden where a is 0: between sources of a copy, in a loop's limit, in an update, where
  // a scan begins.
  for (const char* block :
       {"[a: S(4) = i, b: S(16) = j] { Y[a, b] = "
        "select(a == 0 || X[a, b] < 0f32, 1f32, select(12 // a < 5, X[a, b], Z[a])) }",
        "[a: S(4) = i, b: S(16) = j] { "
        "if !(a == 0 || X[a, b] < 0f32) && b < 12 // a { Y[a, b] = X[a, b] } }",
        "[a: R(4) = i, b: R(16) = j] { Y[0, 0] = Y[0, 0] + "
        "select(!(a == 0 || X[a, b] < 0f32) && 12 // a < 5, X[a, b], 0f32) }",
        "[a: S(4) = i, b: O(16) = j] { Y[a, b] = select(a == 0 || X[a, b] < 0f32, 1f32, "
        "select(1 <= b, Y[a, b - 1], f32(12 // a)) + X[a, b]) }"}) {
    for (const char* kind : {"", "vectorized", "unrolled"}) {
      check_text(std::string(R"(program p(X: f32[4, 16], Z: f32[4]) -> (Y: f32[4, 16]) {
        for i in 4 @L2 { for j in 16 @L3 { block "I" @B1 [a: S(4) = i, b: S(16) = j] { Y[a, b] = 1f32 } } }
        for i in 4 @L0 { for j in 16 @L1 )") +
                 kind + " { block \"Y\" @B0 " + block + " } } }");
    }
  }
}

TEST_CASE("accesses with any stride, and gathers, are exact at the ends of their buffers") {
  for (int stride = 1; stride <= 9; ++stride) {
    for (int lanes : {2, 3, 4, 8, 16, 24}) {
      const std::string n = std::to_string(lanes), s = std::to_string(stride);
      const std::string size = std::to_string(stride * (lanes - 1) + 1);
      check_text("program p(X: f32[" + size + "]) -> (Y: f32[" + n + "]) { for i in " + n +
                 " @L0 vectorized { block \"Y\" @B0 [v: S(" + n + ") = i] { reads X[v*" + s +
                 "] writes Y[v] Y[v] = X[v*" + s + "] } } }");
    }
  }
  check_text(R"(program p(X: f32[16]) -> (Y: f32[16]) { for i in 16 @L0 vectorized {
    block "Y" @B0 [v: S(16) = i] { reads X[15 - v] writes Y[15 - v] Y[15 - v] = X[15 - v] } } })");
  check_text(R"(program p(X: f32[7, 5]) -> (Y: f32[35]) { for i in 35 @L0 vectorized {
    block "Y" @B0 [v: S(35) = i] { reads X[v // 5, v % 5] writes Y[v] Y[v] = X[v // 5, v % 5] } } })");
}

TEST_CASE("an accumulation over lanes combines all of them once") {
  for (const std::string type : {"f32", "f64", "i32", "f16"}) {
    for (const std::string op : {"C[i] + A[i, k]", "max(C[i], A[i, k])", "min(A[i, k], C[i])"}) {
      for (const std::string width : {"16", "7", "50"}) {
        check_text("program p(A: " + type + "[3, 350]) -> (R: " + type +
                   "[3]) { for x in 3 @L0 { for ko in " + std::to_string(350 / std::stoi(width)) +
                   " @L1 { for ki in " + width +
                   " @L2 vectorized { block \"C\" @B0 [i: S(3) = x, k: R(350) = ko*" + width +
                   " + ki] { reads A[i, k] writes R[i] init { R[i] = " + "0" + type + " } R[i] = " +
                   [&] {
                     std::string text = op;
                     text.replace(text.find("C[i]"), 4, "R[i]");
                     return text;
                   }() +
                   " } } } } }");
      }
    }
  }
}

TEST_CASE("a guarded accumulation over lanes leaves out what the guard does") {
  check_text(
      R"(program p(A: f32[4, 30]) -> (R: f32[4]) { for x in 4 @L0 { for ko in 2 @L1 { for ki in 16 @L2 vectorized {
    block "R" @B0 [i: S(4) = x, k: R(30) = ko*16 + ki] where ko*16 + ki < 30 {
      reads A[i, k] writes R[i] init { R[i] = 0f32 } R[i] = R[i] + A[i, k] } } } } })");
}

TEST_CASE(
    "an accumulation over masked lanes into an element that a division finds has all of them") {
  for (const std::string width : {"7", "8"}) {
    check_text("program p(X: f32[4, " + width + R"(]) -> (Y: f32[13]) {
      for j in 13 @L2 { block "I" @B1 [v: S(13) = j] { Y[v] = 1f32 } }
      for i in 4 @L0 { for j in )" +
               width + R"( @L1 vectorized { block "Y" @B0 [a: O(4) = i, b: O()" + width +
               R"() = j, q: O(13) = 12 // (i + 1)] { Y[q] = Y[q] + X[a, b] } } } })");
  }
}

TEST_CASE("iterations that depend on each other are not run in lockstep") {
  check_text(R"(program p(A: f32[16]) -> (P: f32[16]) { for i in 16 @L0 vectorized {
    block "P" @B0 [v: O(16) = i] { reads A[v], P[v - 1] writes P[v]
      P[v] = select(0 < v, P[v - 1], 0f32) + A[v] } } })");
  for (const char* steps :
       {"Y[0] = Y[0] * 2f32 Y[0] = Y[0] + X[v]", "Y[0] = 1f32 Y[0] = Y[0] + X[v]",
        "Y[0] = max(Y[0], X[v]) Y[0] = Y[0] + 1f32", "Y[v % 2] = 0f32 Y[0] = Y[0] + X[v]"}) {
    check_text(std::string(R"(program p(X: f32[8]) -> (Y: f32[2]) {
      for j in 2 @L1 { block "I" @B1 [v: S(2) = j] { Y[v] = 1f32 } }
      for i in 8 @L0 vectorized { block "Y" @B0 [v: O(8) = i] { )") +
               steps + " } } }");
  }
}

TEST_CASE("lanes that meet in an iteration of a loop inside are not run in lockstep") {
  for (const char* value : {"X[a, b]", "Y[a + b] * 2f32 + X[a, b]"}) {
    for (const char* index : {"a + b", "a * 2 + b", "a * 3 + b", "a * 4 + b", "a + b * 15",
                              "a + b * 16", "(a + b) // 2", "60 - a - b"}) {
      std::string text = R"(program p(X: f32[16, 4]) -> (Y: f32[64]) {
        for j in 64 @L2 { block "I" @B1 [v: S(64) = j] { Y[v] = 1f32 } }
        for i in 16 @L0 vectorized { for k in 4 @L1 {
          block "Y" @B0 [a: O(16) = i, b: O(4) = k] { Y[INDEX] = VALUE } } } })";
      text.replace(text.find("VALUE"), 5, value);
      for (std::size_t at = text.find("Y[a + b]"); at != std::string::npos;
           at = text.find("Y[a + b]", at))
        text.replace(at, 8, "Y[INDEX]");
      for (std::size_t at = text.find("INDEX"); at != std::string::npos; at = text.find("INDEX"))
        text.replace(at, 5, index);
      check_text(text);
    }
  }
}

TEST_CASE("accumulations of one kind into one element run in lockstep") {
  check_text(R"(program p(X: f32[40], Z: f32[40]) -> (Y: f32[1]) {
    for i in 40 @L0 vectorized { block "Y" @B0 [v: R(40) = i] { init { Y[0] = 0f32 }
      Y[0] = Y[0] + X[v] Y[0] = Y[0] + Z[v] } } })");
}

TEST_CASE("of lanes that store to one element the last one that runs wins") {
  for (const char* guard : {"i % 64 == 63", "i % 64 == 5", "i % 64 < 20", "0 <= i"}) {
    check_text(std::string(R"(program p(X: f32[128]) -> (Y: f32[2]) {
      for i in 128 @L0 vectorized { block "Y" @B0 [v: O(128) = i] where )") +
               guard + " { Y[v // 64] = X[v] } } }");
  }
}

TEST_CASE("lanes that store to one element in different iterations are not run in lockstep") {
  for (const char* condition : {"(a + b) % 2 == 1", "a % 2 != b", "X[a, b] < 0f32", "0 <= a"}) {
    check_text(std::string(R"(program p(X: f32[16, 2]) -> (Y: f32[8]) {
      for j in 8 @L2 { block "I" @B1 [v: S(8) = j] { Y[v] = 1f32 } }
      for i in 16 @L0 vectorized { for k in 2 @L1 {
        block "Y" @B0 [a: O(16) = i, b: O(2) = k] { if )") +
               condition + " { Y[a // 2] = X[a, b] } } } } }");
  }
  check_text(R"(program p(X: f32[16, 2]) -> (Y: f32[2]) {
    buffer Q: i64[16] local
    for j in 2 @L2 { block "I" @B1 [v: S(2) = j] { Y[v] = 1f32 } }
    for i in 16 @L0 vectorized { for k in 2 @L1 {
      block "Y" @B0 [a: O(16) = i, b: O(2) = k] { Q[a] = (a + b) % 2 Y[Q[a]] = X[a, b] } } } })");
}

TEST_CASE("lanes that store to one element stay apart where loops inside may change which") {
  for (const char* body : {"for k in 2 { if i % 2 != k { Y[i // 8, 0] = X[i, k] } }",
                           "for k in 2 { if X[i, k] < 0f32 { Y[i // 8, 0] = X[i, k] } }",
                           "for k in 2 { if i % 2 != k { for l in 2 { Y[i // 8, 0] = X[i, l] } } }",
                           "for k in 2 { Y[(i + k) // 8, 0] = X[i, k] }",
                           "for k in 2 { Q[i] = (i + k) % 2 Y[Q[i], 0] = X[i, k] }"}) {
    INFO(body);
    CHECK_FALSE(runs_in_lanes(body));
  }
  for (const char* body : {"for k in 2 { Q[i] = k } if i < 6 { Y[i // 4, i % 4] = X[i, 0] }",
                           "if i < 6 { for k in 2 { Q[i] = k } Y[i // 4, i % 4] = X[i, 0] }",
                           "for k in 2 { if i < 6 { Y[i // 4, i % 4] = X[i, k] } }",
                           "for k in 2 { if k == 1 { Y[i // 8, 0] = X[i, k] } }",
                           "if X[i, 0] < 0f32 { for k in 2 { Y[i // 8, 0] = X[i, k] } }",
                           "Q[i] = i % 2 Y[Q[i], 0] = X[i, 0]"}) {
    INFO(body);
    CHECK(runs_in_lanes(body));
  }
}

TEST_CASE("nested vectorized and parallel loops run") {
  check_text(
      R"(program p(A: f32[6, 8, 16]) -> (B: f32[6, 8, 16]) { for i in 6 @L0 parallel { for j in 8 @L1 parallel {
    for k in 16 @L2 vectorized { block "B" @B0 [u: S(6) = i, v: S(8) = j, w: S(16) = k] {
      reads A[u, v, w] writes B[u, v, w] B[u, v, w] = A[u, v, w] * 2f32 } } } } })");
  check_text(
      R"(program p(A: f32[6, 8]) -> (B: f32[6, 8]) { for i in 6 @L0 vectorized { for j in 8 @L1 vectorized {
    block "B" @B0 [u: S(6) = i, v: S(8) = j] { reads A[u, v] writes B[u, v] B[u, v] = A[u, v] + 1f32 } } } })");
}

TEST_CASE("each worker has its own large intermediates") {
  check_text(R"(program p(A: f32[5, 6000]) -> (B: f32[5, 6000]) { buffer T: f32[5, 6000] global
    for i in 5 @L0 parallel {
      for j in 6000 @L1 { block "T" @B0 [u: S(5) = i, v: S(6000) = j] { reads A[u, v] writes T[u, v] T[u, v] = A[u, v] + 1f32 } }
      for j in 6000 @L2 { block "B" @B1 [u: S(5) = i, v: S(6000) = j] {
        reads T[u, 5999 - v] writes B[u, v] B[u, v] = T[u, 5999 - v] } } } })");
}

TEST_CASE("programs without loops, without work or of rank 0 compile") {
  check_text(
      R"(program p(A: f32) -> (B: f32) { block "B" @B0 [] { reads A[] writes B[] B[] = A[] + 1f32 } })");
  check_text(
      R"(program p(A: f32[1, 1]) -> (B: f32[1]) { for i in 1 @L0 vectorized { block "B" @B0 [v: S(1) = i] {
    reads A[v, 0] writes B[v] B[v] = A[v, 0] } } })");
}

TEST_CASE("a register tile with guards on both sides of it is exact") {
  for (const int m : {5, 6, 11, 12, 13}) {
    for (const int n : {15, 16, 17, 33}) {
      const std::string ms = std::to_string(m), ns = std::to_string(n);
      const std::string mo = std::to_string((m + 5) / 6), no = std::to_string((n + 31) / 32);
      const std::string guard = " where i*6 + ii < " + ms + " && j*32 + jj < " + ns;
      check_text("program p(A: f32[" + ms + ", 9], B: f32[9, " + ns + "]) -> (C: f32[" + ms + ", " +
                 ns + "]) { buffer T: f32[" + ms + ", " + ns + "] local for i in " + mo +
                 " @L0 parallel { for j in " + no +
                 " @L1 { for k in 9 @L2 { for ii in 6 @L3 unrolled { for jj in 32 @L4 vectorized { "
                 "block \"T\" @B0 [vi: S(" +
                 ms + ") = i*6 + ii, vj: S(" + ns + ") = j*32 + jj, vk: R(9) = k]" + guard +
                 " { reads A[vi, vk], B[vk, vj] writes T[vi, vj] init { T[vi, vj] = 0f32 }"
                 " T[vi, vj] = T[vi, vj] + A[vi, vk]*B[vk, vj] } } } }"
                 " for ii in 6 @L5 { for jj in 32 @L6 vectorized { block \"C\" @B1 [vi: S(" +
                 ms + ") = i*6 + ii, vj: S(" + ns + ") = j*32 + jj]" + guard +
                 " { reads T[vi, vj] writes C[vi, vj] C[vi, vj] = T[vi, vj] } } } } } }");
    }
  }
}

}  // namespace prunerc
