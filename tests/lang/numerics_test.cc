// Operators against plain loops: what the language says they compute is what their programs
// compute.

#include "tests/lang/case.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace prunerc::testing {
namespace {

using ir::DType;
using ir::Tensor;
using Bindings = std::map<std::string, std::string>;

constexpr double kInf = std::numeric_limits<double>::infinity();

Tensor values(DType dtype, std::vector<int64_t> shape, std::vector<double> elements) {
  return ir::tensor_from(dtype, std::move(shape),
                         [&](int64_t at) { return elements[static_cast<size_t>(at)]; });
}

Tensor whole(DType dtype, std::vector<int64_t> shape, uint64_t seed, int64_t low = -8,
             int64_t high = 8) {
  Rng rng(seed, 0, 0);
  return ir::random_ints(dtype, std::move(shape), low, high, rng);
}

Tensor run_one(const std::string& text, const std::string& op, const Bindings& bindings,
               const std::vector<Tensor>& inputs) {
  return interpret_or_die(compile_or_die(text, op, bindings), inputs)[0];
}

Tensor run_std(const std::string& file, const std::string& op, const Bindings& bindings,
               const std::vector<Tensor>& inputs) {
  return run_one(read_test_file("tools/std/" + file), op, bindings, inputs);
}

/// Element of a row-major tensor; 0 outside.
double at_or_zero(const Tensor& t, std::vector<int64_t> index) {
  int64_t flat = 0;
  for (size_t d = 0; d < index.size(); ++d) {
    if (index[d] < 0 || index[d] >= t.shape[d]) return 0;
    flat = flat * t.shape[d] + index[d];
  }
  return t.get(flat);
}

void check_near(const Tensor& found, const std::vector<double>& expected, double tolerance) {
  REQUIRE(found.num_elements() == static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO(i);
    CHECK(found.get(static_cast<int64_t>(i)) == Approx(expected[i]).margin(tolerance));
  }
}

}  // namespace

TEST_CASE("a constant that is chosen among integers and floats is a float") {
  const Tensor y = run_one(
      "op f(X: f32[2]) -> (Y: f32[2]) { Y[i] = X[i] * (max(3, 0.5) / 2) + (if true then 5 else "
      "0.5) / 2 + (if clamp(7, 0.5, 9) / 2 > 3 then 10 else 0); }",
      "f", {}, {values(DType::kF32, {2}, {1, 2})});
  check_near(y, {14, 15.5}, 0);
}

TEST_CASE("subscripts at the ends of i64 keep their meaning") {
  const Tensor x = values(DType::kF32, {3}, {1, 2, 3});
  const auto run = [&](const std::string& value) {
    return run_one("op f(X: f32[3]) -> (Y: f32[3]) { Y[i] = " + value + "; }", "f", {}, {x});
  };
  check_near(run("X[(if i <= 9223372036854775807 then i else 0)]"), {1, 2, 3}, 0);
  check_near(run("X[(if 9223372036854775807 / (i + 2) < 4611686018427387904 then i else 0)]"),
             {1, 2, 3}, 0);
  // Farther apart than i64 tells, so that no padded copy can hold them.
  check_near(run("sum[k in -1..2, j in 0..3] (X[k * 4611686018427387903 - j] or 0) * X[i]"),
             {1, 2, 3}, 0);
}

TEST_CASE("constants do not move to sides that data then leave i64 on") {
  Tensor a = values(DType::kI64, {2}, {0, 0});
  for (int64_t i = 0; i < 2; ++i) a.set_int(i, (int64_t{1} << 62) - 1);
  const Tensor y = run_one(
      "op f(A: i64[2]) -> (Y: f32[12]) { Y[i] = if i >= 7 && A[0] % 4611686018427387904 + "
      "A[1] % 4611686018427387904 < i - 5 then 1 else 0; }",
      "f", {}, {a});
  check_near(y, std::vector<double>(12, 0), 0);
}

TEST_CASE("a constant that is cast to f32, or is one by its place, is rounded once, as data are") {
  Tensor a = values(DType::kI64, {1}, {0});
  a.set_int(0, 9007199791611905);
  for (const char* const value :
       {"f32(9007199791611905) - f32(A[i])", "9007199791611905 - f32(A[i])",
        "f32(A[i]) + -9007199791611905", "-9007199791611905 + f32(A[i])",
        "(if i == 0 then 9007199791611905 else 0.5) - f32(A[i])"}) {
    INFO(value);
    const std::string text =
        std::string("op f(A: i64[1]) -> (Y: f32[1]) { Y[i] = ") + value + "; }";
    const Tensor y = run_one(text, "f", {}, {a});
    check_near(y, {0}, 0);
  }
  // Of a body that is evaluated in a wider type it is what was written.
  const Tensor z =
      run_one("op f(X: f32[1]) -> (Y: f64) { Y = sum:f64[i] (X[i] + 9007199791611905); }", "f", {},
              {values(DType::kF32, {1}, {0})});
  check_near(z, {9007199791611904}, 0);
}

TEST_CASE("a file may begin with a byte order mark and end its lines as Windows does") {
  const std::string text =
      "op f(X: f32[2]) -> (Y: f32[2]) {  // doubles\r\n  Y[i] = X[i] * 2;\r\n}\r\n";
  check_near(run_one("\xEF\xBB\xBF" + text, "f", {}, {values(DType::kF32, {2}, {1, 2})}), {2, 4},
             0);
}

TEST_CASE("an argument of an fn may stand under one condition, however often") {
  const Tensor y = run_one(
      "fn g(v, i) = if i > 0 then v * v else 0;"
      "op f(X: f32[3]) -> (Y: f32[3]) { Y[i] = g(sum[k in 0..2] X[i + k - 1], i); }",
      "f", {}, {values(DType::kF32, {3}, {1, 2, 3})});
  check_near(y, {0, 9, 25}, 0);
  // What stands below its first place is under that place's condition, too.
  const Tensor z = run_one(
      "fn leaky(v) = if v > 0 then v else v * 2;"
      "op f(X: f32[3]) -> (Y: f32[3]) { Y[i] = if i > 0 then leaky(sum[k in 0..2] X[i + k - 1]) "
      "else "
      "7; }",
      "f", {}, {values(DType::kF32, {3}, {1, -2, 4})});
  check_near(z, {7, -2, 2}, 0);
}

TEST_CASE("conv2d with stride, padding, dilation and groups is the plain loop nest") {
  struct Case {
    int64_t s, p, d, g;
  };
  for (const Case& c : {Case{1, 0, 1, 1}, Case{2, 1, 1, 1}, Case{1, 2, 2, 2}, Case{3, 1, 1, 4}}) {
    const int64_t n = 2, ci = 4, h = 7, w = 6, co = 4, k = 3;
    const Tensor x = whole(DType::kF32, {n, ci, h, w}, 1);
    const Tensor f = whole(DType::kF32, {co, ci / c.g, k, k}, 2);
    const Tensor y = run_std("conv.prn", "conv2d",
                             {{"N", "2"},
                              {"CI", "4"},
                              {"H", "7"},
                              {"W", "6"},
                              {"CO", "4"},
                              {"S", std::to_string(c.s)},
                              {"P", std::to_string(c.p)},
                              {"D", std::to_string(c.d)},
                              {"G", std::to_string(c.g)}},
                             {x, f});
    const int64_t oh = (h + 2 * c.p - c.d * (k - 1) - 1) / c.s + 1;
    const int64_t ow = (w + 2 * c.p - c.d * (k - 1) - 1) / c.s + 1;
    REQUIRE(y.shape == std::vector<int64_t>{n, co, oh, ow});
    std::vector<double> expected;
    for (int64_t i = 0; i < n * co * oh * ow; ++i) {
      const int64_t ox = i % ow, oy = i / ow % oh, o = i / ow / oh % co, image = i / ow / oh / co;
      double sum = 0;
      for (int64_t r = 0; r < ci / c.g * k * k; ++r) {
        const int64_t kx = r % k, ky = r / k % k, channel = r / k / k;
        const int64_t source = o / (co / c.g) * (ci / c.g) + channel;
        sum +=
            at_or_zero(x, {image, source, oy * c.s + ky * c.d - c.p, ox * c.s + kx * c.d - c.p}) *
            at_or_zero(f, {o, channel, ky, kx});
      }
      expected.push_back(sum);
    }
    check_near(y, expected, 0);
  }
}

TEST_CASE("conv_transpose2d scatters every input element") {
  const int64_t ci = 2, h = 3, w = 4, co = 3, k = 3, s = 2, p = 1;
  const Tensor x = whole(DType::kF32, {1, ci, h, w}, 3);
  const Tensor f = whole(DType::kF32, {ci, co, k, k}, 4);
  const Tensor y =
      run_std("conv.prn", "conv_transpose2d",
              {{"CI", "2"}, {"H", "3"}, {"W", "4"}, {"CO", "3"}, {"KH", "3"}, {"KW", "3"}}, {x, f});
  const int64_t oh = (h - 1) * s - 2 * p + k, ow = (w - 1) * s - 2 * p + k;
  std::vector<double> expected(static_cast<size_t>(co * oh * ow), 0);
  for (int64_t i = 0; i < ci * h * w * co * k * k; ++i) {
    const int64_t kx = i % k, ky = i / k % k, o = i / k / k % co, ix = i / k / k / co % w;
    const int64_t iy = i / k / k / co / w % h, c = i / k / k / co / w / h;
    const int64_t oy = iy * s - p + ky, ox = ix * s - p + kx;
    if (oy < 0 || oy >= oh || ox < 0 || ox >= ow) continue;
    expected[static_cast<size_t>((o * oh + oy) * ow + ox)] +=
        at_or_zero(x, {0, c, iy, ix}) * at_or_zero(f, {c, o, ky, kx});
  }
  check_near(y, expected, 0);
}

TEST_CASE("softmax rows are positive, sum to one and follow the exponentials") {
  Rng rng(5, 0, 0);
  const Tensor x = ir::random_normal(DType::kF32, {3, 5}, rng);
  const Tensor y = run_std("norm.prn", "softmax", {{"M", "3"}, {"N", "5"}}, {x});
  std::vector<double> expected;
  for (int64_t i = 0; i < 15; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < 5; ++j) sum += std::exp(x.get(i / 5 * 5 + j));
    expected.push_back(std::exp(x.get(i)) / sum);
  }
  check_near(y, expected, 1e-6);
}

TEST_CASE("softmax of large values does not overflow") {
  const Tensor y = run_std("norm.prn", "softmax", {{"M", "1"}, {"N", "3"}},
                           {values(DType::kF32, {1, 3}, {1000, 1001, -1000})});
  check_near(y, {1 / (1 + std::exp(1.0)), 1 / (1 + std::exp(-1.0)), 0}, 1e-6);
}

TEST_CASE("argmax takes the lowest index of equal values, and -inf is a value") {
  const Tensor x = values(DType::kF32, {4, 4},
                          {1, 3, 3, 2, -kInf, -kInf, -kInf, -kInf, 0, -1, -2, 0, -5, -4, -3, -3});
  const Tensor y = run_std("reduce.prn", "row_argmax", {{"M", "4"}, {"N", "4"}}, {x});
  check_near(y, {1, 0, 0, 2}, 0);
  const Tensor z = run_std("reduce.prn", "row_argmin", {{"M", "4"}, {"N", "4"}}, {x});
  check_near(z, {0, 0, 2, 0}, 0);
}

TEST_CASE("argmax over several indices gives the row-major position") {
  const Tensor x = values(DType::kI32, {2, 3}, {4, 9, 1, 9, 2, 9});
  const std::string text =
      "op f(X: i32[2,3]) -> (p: i64, q: i64) { p = argmax[i,j] X[i,j]; q = argmin[i,j | i > 0] "
      "X[i,j]; }";
  const std::vector<Tensor> y = interpret_or_die(compile_or_die(text), {x});
  CHECK(y[0].get_int(0) == 1);
  CHECK(y[1].get_int(0) == 4);
}

TEST_CASE("empty reductions give their identities") {
  const std::string text =
      "op f<K=0>(X: f32[4]) -> (s: f32, p: f32, m: f32, n: f32, a: bool, b: bool, i: i64, l: i32, "
      "h: u8) {\n"
      "  s = sum[k in 0..K] X[k + 0];  p = prod[k in 0..K] X[k + 0];  m = max[k in 0..K] X[k + "
      "0];\n"
      "  n = min[k in 0..K] X[k + 0];  a = any[k in 0..K] (X[k + 0] > 0);  b = all[k in 0..K] (X[k "
      "+ 0] > 0);\n"
      "  i = argmax[k in 0..K] X[k + 0];  l = max[k in 0..K] i32(X[k + 0]);  h = min[k in 2..K] "
      "u8(X[k + 0]); }";
  const std::vector<Tensor> y =
      interpret_or_die(compile_or_die(text), {whole(DType::kF32, {4}, 6)});
  const double expected[] = {0, 1, -kInf, kInf, 0, 1, -1, -2147483648.0, 255};
  for (size_t i = 0; i < y.size(); ++i) CHECK(y[i].get(0) == expected[i]);
}

TEST_CASE("a condition that never holds makes a reduction empty") {
  const std::string text =
      "op f(X: f32[4]) -> (m: f32, i: i64) { m = max[k | k > 9] X[k]; i = argmin[k | k > 9] X[k]; "
      "}";
  const std::vector<Tensor> y =
      interpret_or_die(compile_or_die(text), {whole(DType::kF32, {4}, 6)});
  CHECK(y[0].get(0) == -kInf);
  CHECK(y[1].get_int(0) == -1);
}

TEST_CASE("quantised products accumulate in i32, round half to even and saturate") {
  const Tensor a = values(DType::kU8, {1, 2}, {255, 255});
  const Tensor b = values(DType::kI8, {2, 5}, {127, -128, 1, 1, 1, 127, -128, 0, 0, 1});
  const Tensor bias = values(DType::kI32, {5}, {0, 0, -250, -252, 0});
  const Tensor scale = values(DType::kF32, {5}, {1, 1, 0.5, 0.5, 0.25});
  const Tensor zero = values(DType::kI32, {}, {2});
  const Tensor y = run_std("quantized.prn", "qgemm", {{"M", "1"}, {"N", "5"}, {"K", "2"}},
                           {a, b, bias, scale, zero});
  // columns 2 and 3: 5/2 rounds to 2, 3/2 rounds to 2; column 4: 510/4 = 127.5 rounds to 128.
  check_near(y, {255, 0, 4, 4, 130}, 0);
}

TEST_CASE("the body of a reduction is evaluated in the accumulator's type") {
  const Tensor a = values(DType::kU8, {2}, {3, 250});
  const Tensor b = values(DType::kU8, {2}, {5, 1});
  const std::string text =
      "op f(A: u8[2], B: u8[2]) -> (s: i32) { s = sum:i32[k] (A[k] - B[k]) * 300; }";
  CHECK(run_one(text, "", {}, {a, b}).get_int(0) == (3 - 5) * 300 + (250 - 1) * 300);
  const std::string half = "op f(A: f16[1]) -> (s: f32) { s = sum:f32[k] A[k] * 0.1; }";
  CHECK(run_one(half, "", {}, {values(DType::kF16, {1}, {1})}).get(0) == static_cast<double>(0.1F));
}

TEST_CASE("embedding rows out of range are zero") {
  const Tensor table = whole(DType::kF16, {3, 2}, 7, 1, 9);
  const Tensor id = values(DType::kI32, {4}, {2, -1, 0, 3});
  const Tensor y =
      run_std("indexing.prn", "embedding", {{"V", "3"}, {"D", "2"}, {"T", "4"}}, {table, id});
  check_near(y, {table.get(4), table.get(5), 0, 0, table.get(0), table.get(1), 0, 0}, 0);
}

TEST_CASE("max pooling ignores the padding") {
  const Tensor x = whole(DType::kF32, {1, 1, 4, 4}, 8, -9, -1);
  const Tensor y = run_std("pool.prn", "max_pool2d", {{"C", "1"}, {"H", "4"}, {"W", "4"}}, {x});
  std::vector<double> expected;
  for (int64_t i = 0; i < 4; ++i) {
    double best = -kInf;
    for (int64_t r = 0; r < 9; ++r) {
      const int64_t row = i / 2 * 2 + r / 3 - 1, column = i % 2 * 2 + r % 3 - 1;
      if (row >= 0 && row < 4 && column >= 0 && column < 4)
        best = std::max(best, x.get(row * 4 + column));
    }
    expected.push_back(best);
  }
  check_near(y, expected, 0);
}

TEST_CASE("reductions inside expressions carry the conditions of their place") {
  // X[i-1+k] is in range only where i > 0, so the sum must not be evaluated elsewhere.
  const std::string text =
      "op f<N=5>(X: f32[N]) -> (Y: f32[N]) {\n"
      "  Y[i] = if i > 0 && i < N-1 then (sum[k in 0..3] X[i-1+k]) / 3 else X[i];\n}";
  const Tensor y = run_one(text, "", {}, {values(DType::kF32, {5}, {3, 6, 9, 0, 12})});
  check_near(y, {3, 6, 5, 7, 12}, 1e-6);
}

TEST_CASE("nested reductions become stages over the indices that they use") {
  const std::string text =
      "op f<M=3, K=4>(A: f32[M,K], B: f32[K,K]) -> (Y: f32[M]) {\n"
      "  Y[i] = sum[k] (A[i,k] * (1 + sum[l] B[k,l]));\n}";
  const ir::Program program = compile_or_die(text);
  CHECK(program.buffers().size() == 4);  // A, B, Y and one vector of inner sums
  const Tensor a = whole(DType::kF32, {3, 4}, 9), b = whole(DType::kF32, {4, 4}, 10);
  std::vector<double> expected(3, 0);
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t k = 0; k < 4; ++k) {
      double inner = 1;
      for (int64_t l = 0; l < 4; ++l) inner += b.get(k * 4 + l);
      expected[static_cast<size_t>(i)] += a.get(i * 4 + k) * inner;
    }
  }
  check_near(interpret_or_die(program, {a, b})[0], expected, 0);
}

TEST_CASE("integer division and remainder are floor, conversions saturate") {
  const std::string text =
      "op f(X: i32[4], Z: f32[4]) -> (Q: i32[4], R: i32[4], C: i8[4]) {\n"
      "  Q[i] = X[i] / 3;  R[i] = X[i] % 3;  C[i] = i8(Z[i]);\n}";
  const std::vector<Tensor> y = interpret_or_die(
      compile_or_die(text), {values(DType::kI32, {4}, {-7, -1, 0, 7}),
                             values(DType::kF32, {4}, {-1e9, -1.9, 1.9, std::nan("")})});
  check_near(y[0], {-3, -1, 0, 2}, 0);
  check_near(y[1], {2, 2, 0, 1}, 0);
  check_near(y[2], {-128, -1, 1, 0}, 0);
}

TEST_CASE("a condition on data guards the division that it makes safe") {
  const std::string text =
      "op f<N=4>(X: i32[N], z: i32) -> (Y: i32[N], Z: i32[N]) {\n"
      "  Y[i] = if z > 0 && X[i] > 0 then (7 / z) % X[i] else -1;\n"
      "  Z[i] = if X[i] == 0 then 0 else 12 / X[i];\n}";
  const std::vector<Tensor> y =
      interpret_or_die(compile_or_die(text),
                       {values(DType::kI32, {4}, {0, 2, -3, 5}), values(DType::kI32, {}, {1})});
  check_near(y[0], {-1, 1, -1, 2}, 0);
  check_near(y[1], {0, 6, -4, 2}, 0);
}

TEST_CASE("causal attention equals attention over the visible keys") {
  const int64_t t = 4, e = 3;
  Rng rng(11, 0, 0);
  const Tensor q = ir::random_normal(DType::kF32, {1, t, e}, rng);
  const Tensor k = ir::random_normal(DType::kF32, {1, t, e}, rng);
  const Tensor v = ir::random_normal(DType::kF32, {1, t, e}, rng);
  const Tensor o =
      run_std("attention.prn", "causal_attention", {{"H", "1"}, {"T", "4"}, {"E", "3"}}, {q, k, v});
  std::vector<double> expected;
  for (int64_t i = 0; i < t * e; ++i) {
    double weight = 0, value = 0;
    for (int64_t s = 0; s <= i / e; ++s) {
      double score = 0;
      for (int64_t c = 0; c < e; ++c) score += q.get(i / e * e + c) * k.get(s * e + c);
      weight += std::exp(score / std::sqrt(3.0));
      value += std::exp(score / std::sqrt(3.0)) * v.get(s * e + i % e);
    }
    expected.push_back(value / weight);
  }
  check_near(o, expected, 1e-5);
}

TEST_CASE("cumulative sums respect the triangle") {
  const Tensor y = run_std("reduce.prn", "cumsum", {{"M", "1"}, {"N", "4"}},
                           {values(DType::kF32, {1, 4}, {1, 2, 3, 4})});
  check_near(y, {1, 3, 6, 10}, 0);
}

TEST_CASE("a command line expression computes what it says") {
  const lang::LangResult result =
      compile_case("", "// expr: i=3 k=2 dtype=A=i32,B=i32\nC[i] = sum[k] A[2*i + k] * B[k]");
  INFO(result.rendered);
  REQUIRE(result.program.has_value());
  CHECK(result.program->name() == "expr");
  const std::vector<Tensor> y = interpret_or_die(
      *result.program,
      {values(DType::kI32, {6}, {1, 2, 3, 4, 5, 6}), values(DType::kI32, {2}, {1, 10})});
  check_near(y[0], {21, 43, 65}, 0);
}

}  // namespace prunerc::testing
