// Reductions over reductions in tiles: equal, safe for exp, and only where a tile can do without the others.
#include "ir/fpv/fpv.h"
#include "ir/printer.h"
#include "ir/support/rng.h"
#include "ir/target.h"
#include "search/algebra/cascade.h"
#include "search/algebra/derive.h"
#include "search/space/space.h"
#include "tests/search/algebra_terms.h"
#include "tests/support/check.h"
#include "tests/support/machines.h"
#include "tests/support/program_gen.h"

#include <catch2/catch.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::search::algebra {
namespace {

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
  return *derive(testing::compile_op(text), testing::measured_machine(),
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
    CHECK(form.numerics == NumericClass::kNormal);
    CHECK(form.recipe.find("each with its own maximum") != std::string::npos);
    const Result<SearchSpace> space =
        make_space(make_task("form", form.program, testing::measured_machine()));
    REQUIRE_OK(space);
    CHECK(std::any_of(space->sketches.begin(), space->sketches.end(),
                      [](const Sketch& sketch) { return sketch.name == "chain"; }));
  }
}

TEST_CASE("attention over many keys is its tiles' attention") {
  check_forms(attention(16384));
  // Divided before the sum, as a softmax of its own is.
  check_forms(attention(16384, "exp(a[h,t,s] - m[h,t])", "sum[s] (p[h,t,s] / l[h,t]) * V[h,s,e]"));
}

TEST_CASE("a tile's attention is one kernel of a GPU, by lanes and where it is allowed by tf32") {
  Spec spec = *lift(testing::compile_op(attention(8192)));
  REQUIRE(!cascade(spec, 256).empty());
  const Result<Lowered> form = lower(spec);
  REQUIRE_OK(form);
  INFO(ir::print(form->program));
  for (const char* target : {"cuda:sm_80", "cuda:sm_80 allow_tf32=1"}) {
    const Result<SearchSpace> space =
        make_space(make_task("form", form->program, *ir::target_from_string(target)));
    REQUIRE_OK(space);
    const auto has = [&](std::string_view name) {
      return std::any_of(space->sketches.begin(), space->sketches.end(),
                         [&](const Sketch& sketch) { return sketch.name == name; });
    };
    INFO(target);
    CHECK(has("gpu+chain"));
    CHECK(has("gpu+tensor+chain") == (std::string_view(target) != "cuda:sm_80"));
  }
}

TEST_CASE("values in tiles are those of the whole rows") {
  const std::string sums[] = {"(sum[s] p[h,t,s] * V[h,s,e]) / l[h,t]",
                              "sum[s] (p[h,t,s] / l[h,t]) * V[h,s,e]"};
  for (const std::string& sum : sums) {
    std::string text = attention(30, "exp(a[h,t,s] - m[h,t])", sum.c_str());
    text.replace(text.find("T=256"), 5, "T=3");
    const ir::Program program = testing::compile_op(text);
    for (const int64_t tile : {2, 3, 10, 15}) {
      Spec spec = *lift(program);
      REQUIRE(!cascade(spec, tile).empty());
      const Result<Lowered> form = lower(spec);
      REQUIRE_OK(form);
      INFO(ir::print(form->program));
      CHECK(form->program.buffers().size() > program.buffers().size());
      for (const double scale : {1.0, 30.0}) {
        Rng rng(static_cast<uint64_t>(tile));
        std::vector<ir::Tensor> inputs = testing::random_inputs(program, rng);
        for (ir::Tensor& tensor : inputs) {
          for (int64_t i = 0; i < tensor.num_elements(); ++i) {
            tensor.set(i, scale * (2 * rng.uniform() - 1));
          }
        }
        const ir::Tensor wanted = testing::interpret_or_die(program, inputs)[0];
        const ir::Tensor found = testing::interpret_or_die(form->program, inputs)[0];
        for (int64_t i = 0; i < wanted.num_elements(); ++i) {
          REQUIRE(std::fabs(found.get(i) - wanted.get(i)) <= 1e-5 * scale);
        }
      }
    }
  }
}

TEST_CASE("tiles divide the axis, and are near to what caches hold") {
  const auto tile = [](int64_t keys) {
    return cascade_tile(*lift(testing::compile_op(attention(keys))));
  };
  CHECK(tile(8192) == 256);
  CHECK(tile(3000) == 250);
  CHECK(tile(2 * 521) == 521);
  CHECK(tile(4099) == 0);  // a prime
  CHECK(tile(256) == 0);
  CHECK(cascade_of(attention(16384), 100).empty());
  CHECK(cascade_of(attention(16384), 16384).empty());
  CHECK(cascade_of(attention(16384), 1).empty());
  CHECK_FALSE(cascade_of(attention(16384), 256).empty());
}

TEST_CASE("what a tile cannot do without the others stays") {
  // No maximum, another one's maximum, a maximum that is added, and a square.
  CHECK(cascade_of(attention(16384, "exp(a[h,t,s])"), 256).empty());
  CHECK(cascade_of(attention(16384, "exp(a[h,t,s] - m[h,t])",
                             "(sum[s] p[h,t,s] * V[h,s,e]) / l[h,t]", "max[s] K[h,s,t % 32]"),
                   256)
            .empty());
  CHECK(cascade_of(attention(16384, "exp(a[h,t,s] + m[h,t])"), 256).empty());
  // A mask could hide a tile whole: by a constant, or by what is added.
  CHECK(cascade_of(R"(
op masked<T=256, S=16384, E=32>(Q: f32[T,E], K: f32[S,E], M: f32[T,S], V: f32[S,E]) -> (O: f32[T,E]) {
  let a[t,s] = (sum[e] Q[t,e] * K[s,e]) + M[t,s];
  let m[t]   = max[s] a[t,s];
  let p[t,s] = exp(a[t,s] - m[t]);
  let l[t]   = sum[s] p[t,s];
  O[t,e]     = (sum[s] p[t,s] * V[s,e]) / l[t];
})",
                   256)
            .empty());
  CHECK(cascade_of(attention(16384, "exp((if s <= t then a[h,t,s] else -inf) - m[h,t])",
                             "(sum[s] p[h,t,s] * V[h,s,e]) / l[h,t]",
                             "max[s] (if s <= t then a[h,t,s] else -inf)"),
                   256)
            .empty());
  CHECK(cascade_of(attention(16384, "if s <= t then exp(a[h,t,s] - m[h,t]) else 0",
                             "(sum[s] p[h,t,s] * V[h,s,e]) / l[h,t]", "max[s | s <= t] a[h,t,s]"),
                   256)
            .empty());
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
