// What stands between a form and its use: finite fields, and numbers that fields know nothing of.
#include "search/algebra/form_check.h"
#include "search/algebra/order.h"
#include "search/algebra/roofline.h"
#include "tests/search/algebra_terms.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <string>

namespace prunerc::search::algebra {
namespace {

const char* const kVariance = R"(
op variance<M=3, N=50>(X: f32[M,N]) -> (Y: f32[M]) {
  let mean[i] = (sum[j] X[i,j]) / N;
  Y[i] = (sum[j] (X[i,j] - mean[i]) * (X[i,j] - mean[i])) / N;
})";

TEST_CASE("an operator errs as much as itself") {
  const ir::Program program = testing::compile_op(kVariance);
  const NumericVerdict verdict = check_numerics({program, program}, 1);
  CHECK(verdict.is_known);
  CHECK(verdict.numerics == NumericClass::kNormal);
  CHECK(verdict.factor <= 1);
}

TEST_CASE(
    "the mean of squares less the square of the mean is equal in fields and refused by numbers") {
  const SmallPair pair = {testing::compile_op(kVariance), testing::compile_op(R"(
op variance<M=3, N=50>(X: f32[M,N]) -> (Y: f32[M]) {
  let mean[i]   = (sum[j] X[i,j]) / N;
  let square[i] = (sum[j] X[i,j] * X[i,j]) / N;
  Y[i] = square[i] - mean[i] * mean[i];
})")};
  CHECK(check_form(pair, -40, 1).ok());
  const NumericVerdict verdict = check_numerics(pair, 1);
  INFO(verdict.what);
  CHECK(verdict.factor > 1);
  CHECK(verdict.numerics != NumericClass::kNormal);
}

TEST_CASE("a mean stays one when its row is shrunk, so that cancellation shows") {
  const ir::Program program = testing::compile_op(R"(
op p<M=16, K=4096, N=4096>(X: f32[M,K], W: f32[K,N]) -> (Y: f32[M,N]) {
  let mean[m] = (sum[k] X[m,k]) / K;
  let var[m]  = (sum[k] (X[m,k] - mean[m]) * (X[m,k] - mean[m])) / K;
  Y[m,n]      = sum[k] ((X[m,k] - mean[m]) / sqrt(var[m] + 1e-5)) * W[k,n];
})");
  const DeriveReport report = *derive(program, *ir::target_from_string("cpu"), {.keep = 16});
  CHECK(!report.forms.empty());
  for (const Derived& form : report.forms) {
    INFO(form.recipe);
    // sqrt(eps + (mean of squares - square of the mean)).
    CHECK(form.recipe.find("(1e-05 + (.. - ..))") == std::string::npos);
  }
  const auto is_cancelled = [](const std::string& why) {
    return why.find("(1e-05 + (.. - ..))") != std::string::npos;
  };
  CHECK(std::any_of(report.refused.begin(), report.refused.end(), is_cancelled));
}

TEST_CASE("operators that name a position have no forms, as small programs lack it") {
  for (const char* condition :
       {"k == 200", "k < 200", "k >= 64", "k/8 == 3", "k != 399", "k <= n + 3", "n == k + 4"}) {
    INFO(condition);
    const std::string text =
        std::string("op f<N=128,K=400>(D: f32[N,K], v: f32[N]) -> (y: f32[N,K]) { y[n,k] = (if ") +
        condition + " then exp(D[n,k]*D[n,k]) else D[n,k]) * v[n]; }";
    const DeriveReport report = *derive(testing::compile_op(text), *ir::target_from_string("cpu"));
    CHECK(report.forms.empty());
    CHECK(report.refused.size() == 1);
  }
}

TEST_CASE("padding, triangles and digits of small periods are no positions") {
  for (const char* condition :
       {"k >= 1 && k < 399", "k <= n", "k <= n + 2", "n + 3 <= k", "k == n", "k == 0", "k < 1"}) {
    INFO(condition);
    const std::string text =
        std::string("op f<N=400,K=400>(D: f32[N,K], v: f32[N]) -> (y: f32[N,K]) { y[n,k] = (if ") +
        condition + " then D[n,k]*D[n,k] else D[n,k]) * v[n]; }";
    CHECK_FALSE(lift(testing::compile_op(text))->names_positions);
  }
}

TEST_CASE("numbers that are finite nowhere say nothing") {
  const ir::Program program =
      testing::compile_op("op p<N=40>(X: f32[N]) -> (Y: f32[N]) { Y[i] = log(X[i] * 0 - 1) * 2; }");
  const NumericVerdict verdict = check_numerics({program, program}, 1);
  CHECK_FALSE(verdict.numerics.has_value());
  CHECK(verdict.what.find("too few values") == 0);
}

TEST_CASE("what would be nested too deeply or written out many times is an error or stays small") {
  std::string deep = "op d<N=8>(X: f32[N], Z: f32[N]) -> (Y: f32[N]) { let a0[i] = X[i];";
  for (int i = 1; i <= 200; ++i) {
    deep += " let a" + std::to_string(i) + "[i] = (a" + std::to_string(i - 1) + "[i]+1)*Z[i]+2;";
  }
  const Result<DeriveReport> report =
      derive(testing::compile_op(deep + " Y[i] = a200[i]; }"), *ir::target_from_string("cpu"));
  REQUIRE_OK(report);
  CHECK(report->forms.empty());
  std::string squares = "op s<N=8>(X: f32[N]) -> (Y: f32[N]) { let a0[i] = X[i];";
  for (int i = 1; i <= 40; ++i) {
    const std::string before = "a" + std::to_string(i - 1) + "[i]";
    squares += " let a" + std::to_string(i) + "[i] = " + before + "*" + before + ";";
  }
  const Result<Lowered> lowered = lower(*lift(testing::compile_op(squares + " Y[i] = a40[i]; }")));
  REQUIRE_OK(lowered);
}

TEST_CASE("what overflows where the operator does not is refused") {
  const SmallPair pair = {
      testing::compile_op("op p<N=40>(X: f32[N]) -> (Y: f32[N]) { Y[i] = (X[i] / 100) * X[i]; }"),
      testing::compile_op("op p<N=40>(X: f32[N]) -> (Y: f32[N]) { Y[i] = "
                          "((X[i] * 1e36) * X[i]) / 1e36 / 100; }")};
  const NumericVerdict verdict = check_numerics(pair, 1);
  CHECK_FALSE(verdict.numerics.has_value());
  CHECK(verdict.what.find("inf instead of") != std::string::npos);
}

TEST_CASE("another function is refused by fields and by numbers") {
  const SmallPair pair = {
      testing::compile_op("op p<N=8>(X: f32[N]) -> (Y: f32[N]) { Y[i] = X[i] * 3; }"),
      testing::compile_op("op p<N=8>(X: f32[N]) -> (Y: f32[N]) { Y[i] = X[i] * 4; }")};
  CHECK(check_form(pair, -40, 1).kind == ir::VerdictKind::kNotEqual);
  CHECK_FALSE(check_numerics(pair, 1).numerics.has_value());
}

TEST_CASE("integers agree exactly or not at all") {
  const SmallPair same = {
      testing::compile_op("op p<N=8>(X: i32[N]) -> (Y: i32[N]) { Y[i] = X[i] * 2 + 2; }"),
      testing::compile_op("op p<N=8>(X: i32[N]) -> (Y: i32[N]) { Y[i] = (X[i] + 1) * 2; }")};
  CHECK(check_numerics(same, 1).numerics == NumericClass::kNormal);
  const SmallPair other = {
      same.spec,
      testing::compile_op("op p<N=8>(X: i32[N]) -> (Y: i32[N]) { Y[i] = X[i] * 2 + 1; }")};
  CHECK_FALSE(check_numerics(other, 1).numerics.has_value());
}

TEST_CASE("both are shrunk by the axes that their loops share, odd extents included") {
  const ir::Program program = testing::compile_op(R"(
op p<M=1031, K=517, N=263, R=31>(X: f32[M,K], A: f32[K,R], B: f32[R,N]) -> (Y: f32[M,N]) {
  let W[k,n] = sum[r] A[k,r] * B[r,n];
  Y[m,n] = sum[k] X[m,k] * W[k,n];
})");
  const Spec spec = *lift(program);
  Spec other = spec;
  REQUIRE(!reorder(other).empty());
  const Result<Lowered> form = lower(other);
  REQUIRE_OK(form);
  for (const int64_t scale : {1, 2, 8}) {
    const Result<SmallPair> small = shrink_pair(program, spec.loops, *form, other.axes, scale);
    REQUIRE_OK(small);
    CHECK(check_form(*small, -40, 7).ok());
    for (const ir::BufferId id : small->form.params()) {
      for (const int64_t extent : ir::shape_of(small->form.buffer(id))) CHECK(extent <= 4 * scale);
    }
  }
}

TEST_CASE("forms whose parameters shrink apart are not compared") {
  const ir::Program program =
      testing::compile_op("op p<N=8>(X: f32[N]) -> (Y: f32[N]) { Y[i] = X[i] * 2; }");
  Spec spec = *lift(program);
  Result<Lowered> form = lower(spec);
  REQUIRE_OK(form);
  std::vector<Axis> axes = spec.axes;
  form->loops.clear();
  CHECK_DIAG(shrink_pair(program, spec.loops, *form, axes), Unsupported);
}

TEST_CASE(
    "constants are computed ahead and cost nothing, elementwise nests run with what they read") {
  const ir::Target target = *ir::target_from_string("cpu");
  const char* const text = R"(
op p<M=64, K=64, N=64>(X: f32[M,K], {} A: f32[K,N], {} B: f32[K,N]) -> (Y: f32[M,N]) {
  let W[k,n] = exp(A[k,n]) * B[k,n];
  let y[m,n] = sum[k] X[m,k] * W[k,n];
  Y[m,n] = max(y[m,n], 0);
})";
  const auto cost = [&](const std::string& is_const) {
    std::string filled = text;
    for (size_t at = filled.find("{}"); at != std::string::npos; at = filled.find("{}")) {
      filled.replace(at, 2, is_const);
    }
    return roofline(testing::compile_op(filled), target);
  };
  const Roofline each_call = cost(""), ahead = cost("const");
  CHECK(ahead.limit_ns < each_call.limit_ns);
  CHECK(ahead.flops == 64 * 64 * (2 * 64 + 1));
  // X, W and Y once: y never leaves registers.
  CHECK(ahead.bytes == 3 * 64 * 64 * 4);
}

TEST_CASE("what is computed of constants lies where parameters do") {
  const ir::Target target = *ir::target_from_string("cpu");
  const ir::Program plain = testing::compile_op(R"(
op p<M=1, K=256, N=256>(X: f32[M,K], const A: f32[K,N]) -> (Y: f32[M,N]) {
  Y[m,n] = sum[k] X[m,k] * A[k,n];
})");
  const ir::Program made = testing::compile_op(R"(
op p<M=1, K=256, N=256>(X: f32[M,K], const A: f32[K,N]) -> (Y: f32[M,N]) {
  let W[k,n] = exp(A[k,n]);
  Y[m,n] = sum[k] X[m,k] * W[k,n];
})");
  CHECK(roofline(made, target).limit_ns == Approx(roofline(plain, target).limit_ns));
}

}  // namespace
}  // namespace prunerc::search::algebra
