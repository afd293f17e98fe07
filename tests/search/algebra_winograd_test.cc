// Convolutions by fewer products: the matrices are exact, odd sizes come out right, and nothing else is
// taken for a convolution.
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "ir/support/rng.h"
#include "search/algebra/derive.h"
#include "search/algebra/form_check.h"
#include "search/algebra/winograd.h"
#include "tests/search/algebra_terms.h"
#include "tests/support/check.h"
#include "tests/support/machines.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <string>
#include <vector>

namespace prunerc::search::algebra {
namespace {

std::string convolution(int channels, int size, int stride = 1,
                        const char* after = "acc[n,o,h,w]") {
  return fmt::format(R"(
op conv<N=1, C={0}, H={1}, S={2}>(X: f32[N,C,H,H], const F: f32[{0},C,3,3]) -> (Y: f32[N,{0},OH,OH])
   where OH = (H - 1)/S + 1 {{
  let acc[n,o,h,w] = sum[c,kh,kw] (X[n,c,h*S+kh-1,w*S+kw-1] or 0) * F[o,c,kh,kw];
  Y[n,o,h,w] = {3};
}})",
                     channels, size, stride, after);
}

TEST_CASE("the matrices correlate exactly") {
  for (const auto& [m, r] :
       std::vector<std::pair<int, int>>{{2, 3}, {4, 3}, {3, 2}, {2, 5}, {3, 5}, {2, 2}}) {
    const ToomCook t = toom_cook(m, r);
    const int n = m + r - 1;
    Rng rng(5);
    std::vector<int64_t> g, d;
    for (int i = 0; i < r; ++i) g.push_back(rng.between(-9, 9));
    for (int i = 0; i < n; ++i) d.push_back(rng.between(-9, 9));
    for (int i = 0; i < m; ++i) {
      int64_t wanted = 0, found = 0;
      for (int k = 0; k < r; ++k)
        wanted += g[static_cast<size_t>(k)] * d[static_cast<size_t>(i + k)];
      for (int j = 0; j < n; ++j) {
        const auto row = static_cast<size_t>(j);
        int64_t x = 0, y = 0;
        for (int k = 0; k < r; ++k)
          x += t.g[row][static_cast<size_t>(k)] * g[static_cast<size_t>(k)];
        for (int k = 0; k < n; ++k)
          y += t.b[row][static_cast<size_t>(k)] * d[static_cast<size_t>(k)];
        found += t.a[static_cast<size_t>(i)][row] * x * y;
      }
      INFO("F(" << m << ", " << r << ")");
      CHECK(found == wanted * t.scale);
    }
  }
}

TEST_CASE("sizes that tiles divide and others come out right") {
  for (const int size : {56, 28, 27, 14, 31}) {
    for (const char* after : {"acc[n,o,h,w]", "max(acc[n,o,h,w], 0)"}) {
      const ir::Program program = testing::compile_op(convolution(64, size, 1, after));
      const DeriveReport report = *derive(
          program, testing::measured_machine(),
          {.rules = static_cast<RuleSet>(Rule::kWinograd), .numerics = NumericClass::kLoose});
      for (const std::string& why : report.refused) UNSCOPED_INFO(why);
      INFO(size << " " << after);
      REQUIRE(report.forms.size() >= 1);
      for (const Derived& form : report.forms) {
        INFO(form.recipe << "\n" << ir::print(form.program));
        CHECK(form.verdict.ok());
        CHECK(form.numerics == NumericClass::kLoose);
        CHECK(form.flops < report.spec_flops);
      }
    }
  }
}

TEST_CASE("a small convolution by Winograd is equal at its own extents") {
  const ir::Program program = testing::compile_op(convolution(32, 5));
  for (const int m : {2, 4}) {
    Spec spec = *lift(program);
    REQUIRE(!winograd(spec, m).empty());
    const Result<Lowered> lowered = lower(spec);
    REQUIRE_OK(lowered);
    CHECK(ir::check_equivalent(program, lowered->program).ok());
  }
}

TEST_CASE("a wrong sign in a matrix is refuted") {
  const ir::Program program = testing::compile_op(convolution(32, 5));
  Spec spec = *lift(program);
  REQUIRE(!winograd(spec, 2).empty());
  const Result<Lowered> lowered = lower(spec);
  REQUIRE_OK(lowered);
  std::string text = ir::print(lowered->program);
  const size_t at = text.rfind(" - ");
  REQUIRE(at != std::string::npos);
  text[at + 1] = '+';
  CHECK(ir::check_equivalent(program, testing::parse_or_die(text)).kind ==
        ir::VerdictKind::kNotEqual);
}

TEST_CASE("Winograd is offered to nobody who did not ask for loose numbers") {
  const DeriveReport report =
      *derive(testing::compile_op(convolution(64, 56)), testing::measured_machine());
  for (const Derived& form : report.forms) UNSCOPED_INFO(form.recipe << ir::print(form.program));
  CHECK(report.forms.empty());
}

TEST_CASE("strides, few channels and products are no windows") {
  for (const std::string& text :
       {convolution(32, 8, 2), convolution(16, 8),
        std::string("op p(A: f32[64,64], B: f32[64,64]) -> (C: f32[64,64]) { C[i,j] = sum[k] "
                    "A[i,k] * B[k,j]; }"),
        std::string("op d(X: f32[32,10,10], F: f32[32,3,3]) -> (Y: f32[32,8,8]) { Y[c,h in 0..8,w "
                    "in 0..8] = "
                    "sum[kh,kw] X[c,h+kh,w+kw] * F[c,kh,kw]; }")}) {
    INFO(text);
    Spec spec = *lift(testing::compile_op(text));
    CHECK(winograd(spec, 2) == "");
  }
}

}  // namespace
}  // namespace prunerc::search::algebra
