// Reductions over reductions in tiles: equal, safe for exp, and only where a tile can do without the others.
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "search/algebra/cascade.h"
#include "search/algebra/derive.h"
#include "tests/search/algebra_terms.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <string>
#include <vector>

namespace prunerc::search::algebra {
namespace {

// A machine whose caches do not hold what the operators below have between their nests.
ir::Target machine() {
  ir::Target target = *ir::target_from_string("cpu:znver4");
  target.platform.fma_gflops = 260;
  target.platform.l2_bandwidth = 250e9;
  target.platform.l3_bandwidth = 110e9;
  target.platform.memory_bandwidth = 40e9;
  target.num_threads = 1;
  return target;
}

std::string attention(int64_t keys, const char* weight = "exp(a[h,t,s] - m[h,t])",
                      const char* sum = "(sum[s] p[h,t,s] * V[h,s,e]) / l[h,t]",
                      const char* maximum = "max[s] a[h,t,s]") {
  return fmt::format(R"(
op attention<H=4, T=256, S={}, E=32>(Q: f32[H,T,E], K: f32[H,S,E], V: f32[H,S,E]) -> (O: f32[H,T,E]) {{
  let a[h,t,s] = sum[e] Q[h,t,e] * K[h,s,e];
  let m[h,t]   = {};
  let p[h,t,s] = {};
  let l[h,t]   = sum[s] p[h,t,s];
  O[h,t,e]     = {};
}})",
                     keys, maximum, weight, sum);
}

DeriveReport cascades_of(const std::string& text) {
  return *derive(testing::compile_op(text), machine(),
                 {.rules = static_cast<RuleSet>(Rule::kCascade)});
}

std::string cascade_of(const std::string& text, int64_t tile) {
  Spec spec = *lift(testing::compile_op(text));
  return cascade(spec, tile);
}

void check_forms(const std::string& text) {
  const DeriveReport report = cascades_of(text);
  for (const std::string& why : report.refused) UNSCOPED_INFO(why);
  REQUIRE(!report.forms.empty());
  for (const Derived& form : report.forms) {
    INFO(form.recipe << "\n" << ir::print(form.program));
    CHECK(form.verdict.ok());
    CHECK(form.verdict.log2_error <= -40);
    CHECK(form.numerics <= NumericClass::kNormal);
    CHECK(form.limit_ns < report.spec_limit_ns);
    CHECK(form.recipe.find("each with its own maximum") != std::string::npos);
  }
}

TEST_CASE("attention over many keys is its tiles' attention") {
  check_forms(attention(8192));
  // Divided before the sum, as a softmax of its own is.
  check_forms(attention(8192, "exp(a[h,t,s] - m[h,t])", "sum[s] (p[h,t,s] / l[h,t]) * V[h,s,e]"));
}

TEST_CASE("the logarithm of a sum of exponentials needs no row of logits") {
  check_forms(R"(
op logsumexp<M=256, K=32, N=50257>(X: f32[M,K], W: f32[K,N]) -> (Y: f32[M]) {
  let z[m,n] = sum[k] X[m,k] * W[k,n];
  let t[m] = max[n] z[m,n];
  let l[m] = sum[n] exp(z[m,n] - t[m]);
  Y[m] = t[m] + log(l[m]);
})");
}

TEST_CASE("tiles divide the axis, and are near to what caches hold") {
  const auto tiles = [](int64_t keys) {
    return cascade_tiles(*lift(testing::compile_op(attention(keys))));
  };
  CHECK(tiles(8192) == std::vector<int64_t>{256, 1024});
  CHECK(tiles(3000) == std::vector<int64_t>{250, 1000});
  CHECK(tiles(2 * 521) == std::vector<int64_t>{521});
  CHECK(tiles(4099).empty());  // a prime
  CHECK(tiles(256).empty());
  CHECK(cascade_of(attention(8192), 100).empty());
  CHECK(cascade_of(attention(8192), 8192).empty());
  CHECK(cascade_of(attention(8192), 1).empty());
  CHECK_FALSE(cascade_of(attention(8192), 256).empty());
}

TEST_CASE("what a tile cannot do without the others stays") {
  // No maximum, another one's maximum, a maximum that is added, and a square.
  CHECK(cascade_of(attention(8192, "exp(a[h,t,s])"), 256).empty());
  CHECK(cascade_of(attention(8192, "exp(a[h,t,s] - m[h,t])",
                             "(sum[s] p[h,t,s] * V[h,s,e]) / l[h,t]", "max[s] K[h,s,t % 32]"),
                   256)
            .empty());
  CHECK(cascade_of(attention(8192, "exp(a[h,t,s] + m[h,t])"), 256).empty());
  CHECK(cascade_of(R"(
op variance<M=64, N=8192>(X: f32[M,N]) -> (V: f32[M]) {
  let u[m] = (sum[n] X[m,n]) / 8192;
  V[m] = sum[n] (X[m,n] - u[m]) * (X[m,n] - u[m]);
})",
                   256)
            .empty());
}

}  // namespace
}  // namespace prunerc::search::algebra
