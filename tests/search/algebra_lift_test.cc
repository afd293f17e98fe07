// Programs as terms and back: nothing of what they compute is lost, and equal computations are one term.
#include "ir/fpv/fpv.h"
#include "ir/interp/interpreter.h"
#include "ir/printer.h"
#include "search/algebra/axis.h"
#include "search/algebra/lift.h"
#include "search/algebra/words.h"
#include "tests/search/algebra_terms.h"
#include "tests/support/check.h"
#include "tests/support/operators.h"

#include <catch2/catch.hpp>

#include <string>

namespace prunerc::search::algebra {
namespace {

using testing::lift_or_die;
using testing::parse_or_die;

void check_round_trip(const ir::Program& program) {
  INFO(ir::print(program));
  const Spec spec = lift_or_die(program);
  const Result<Lowered> lowered = lower(spec);
  REQUIRE_OK(lowered);
  INFO(ir::print(lowered->program));
  const ir::FpvVerdict verdict = ir::check_equivalent(program, lowered->program);
  INFO(ir::to_string(verdict));
  // What fields know nothing of is run.
  if (verdict.kind == ir::VerdictKind::kUnsupported) {
    testing::check_same_result(program, lowered->program, 3);
  } else {
    CHECK(verdict.ok());
  }
}

TEST_CASE("every operator that is lifted and lowered again computes the same") {
  for (const testing::NamedProgram& op : testing::operator_gallery()) {
    INFO(op.name);
    check_round_trip(op.program);
  }
}

TEST_CASE("a plain operator is lifted whole and keeps its blocks") {
  const ir::Program program = testing::compile_op(R"(
op attention<H=2, T=3, S=5, E=4>(Q: f32[H,T,E], K: f32[H,S,E], V: f32[H,S,E]) -> (O: f32[H,T,E]) {
  let a[h,t,s] = sum[e] Q[h,t,e] * K[h,s,e];
  let m[h,t]   = max[s] a[h,t,s];
  let p[h,t,s] = exp(a[h,t,s] - m[h,t]);
  let l[h,t]   = sum[s] p[h,t,s];
  let o[h,t,f] = sum[s] p[h,t,s] * V[h,s,f];
  O[h,t,f]     = o[h,t,f] / l[h,t];
})");
  const Spec spec = lift_or_die(program);
  REQUIRE(spec.outputs.size() == 1);
  CHECK(spec.kept.empty());
  CHECK(spec.axes.size() == 5);  // h, t, s, e and f: no loop is renamed
  CHECK(text_of(spec, spec.outputs[0].value) ==
        "(sum[s] (exp((sum[e] (Q[h, t, e]*K[h, s, e])) - (max[s] (sum[e] (Q[h, t, e]*K[h, s, "
        "e]))))*V[h, s, f]))/(sum[s] exp((sum[e] (Q[h, t, e]*K[h, s, e])) - (max[s] (sum[e] (Q[h, "
        "t, e]*K[h, s, e])))))");
  const Result<Lowered> lowered = lower(spec);
  REQUIRE_OK(lowered);
  CHECK(lowered->program.buffers().size() == program.buffers().size());
  check_round_trip(program);
}

TEST_CASE("what is computed twice is one term") {
  const Spec spec = lift_or_die(testing::compile_op(R"(
op twice<M=3, K=4, N=5>(X: f32[M,K], W: f32[K,N]) -> (Y: f32[M,N], Z: f32[M,N]) {
  let a[i,j] = sum[k] X[i,k] * W[k,j];
  let b[u,v] = sum[q] X[u,q] * W[q,v];
  Y[i,j] = a[i,j] * 2;
  Z[i,j] = b[i,j] + 1;
})"));
  REQUIRE(spec.outputs.size() == 2);
  const Term& y = spec.graph[spec.outputs[0].value];
  const Term& z = spec.graph[spec.outputs[1].value];
  CHECK(y.args[0] == z.args[0]);
}

TEST_CASE("an intermediate that is read at two places stays a buffer") {
  const ir::Program program = testing::compile_op(R"(
op gram<M=3, K=4>(X: f32[M,K]) -> (Y: f32[M,M]) {
  let a[i,k] = X[i,k] * 2;
  Y[i,j] = sum[k] a[i,k] * a[j,k];
})");
  const Spec spec = lift_or_die(program);
  CHECK(spec.outputs.size() == 2);
  check_round_trip(program);
}

TEST_CASE("a bound axis is not caught by a free one of the same input") {
  // e is bound in a and free in O, both along the last dimension of X.
  const ir::Program program = testing::compile_op(R"(
op self<T=3, E=4>(X: f32[T,E]) -> (O: f32[T,E]) {
  let a[t,s] = sum[e] X[t,e] * X[s,e];
  O[t,f] = sum[s] a[t,s] * X[s,f];
})");
  check_round_trip(program);
}

TEST_CASE("gathers, scans and positions are kept as they are") {
  for (const char* text : {R"(
op gather<V=7, D=3, T=5>(E: f32[V,D], id: i32[T], g: f32[D]) -> (Y: f32[T,D]) {
  let e[t,d] = E[id[t],d] or 0;
  Y[t,d] = e[t,d] * g[d];
})",
                           R"(
op best<M=3, N=5>(X: f32[M,N]) -> (I: i64[M]) { let y[m,n] = X[m,n] * 2; I[m] = argmax[n] y[m,n]; })",
                           R"(
op position<M=3>(X: f32[M]) -> (Y: f32[M]) { Y[i] = X[i] * f32(i); })"}) {
    const ir::Program program = testing::compile_op(text);
    CHECK(lift_or_die(program).kept.size() == 1);
    check_round_trip(program);
  }
}

TEST_CASE("a scheduled program is kept whole") {
  const ir::Program program = parse_or_die(R"(
program p(A: f32[8]) -> (C: f32[8]) {
  for i0 in 2 parallel { for i1 in 4 {
    block "C" [v: S(8) = i0*4 + i1] { C[v] = A[v] } } } })");
  const Spec spec = lift_or_die(program);
  CHECK(spec.outputs.empty());
  CHECK(spec.kept.size() == 1);
}

// Digits.

int64_t value_of(const Subscript& s, const std::vector<int64_t>& at) {
  int64_t sum = s.base;
  for (const Digit& d : s.digits) {
    int64_t v = at[static_cast<std::size_t>(d.axis)] / d.lower;
    if (d.extent != 0) v %= d.extent;
    sum += v * d.scale;
  }
  return sum;
}

TEST_CASE("an axis that becomes a pair is taken apart exactly, or not at all") {
  int num_exact = 0, num_refused = 0;
  for (const int64_t radix : {2, 3, 4, 6}) {
    const int64_t high = 4;
    for (const int64_t lower : {1, 2, 3, 4, 6, 8, 12}) {
      for (const int64_t extent : {0, 2, 3, 4, 6, 8}) {
        const Subscript before{{Digit{0, lower, extent, 5}}, 7};
        const AxisMap map = {{0, plain_subscript(1) * radix + plain_subscript(2)}};
        Subscript after;
        if (!replace_axes(before, map, &after)) {
          ++num_refused;
          continue;
        }
        ++num_exact;
        for (int64_t h = 0; h < high; ++h) {
          for (int64_t l = 0; l < radix; ++l) {
            INFO(radix << " " << lower << " " << extent << " at " << h << ", " << l);
            CHECK(value_of(before, {h * radix + l}) == value_of(after, {0, h, l}));
          }
        }
      }
    }
  }
  CHECK(num_exact > 60);
  CHECK(num_refused > 20);
}

TEST_CASE("heads that share keys become two axes") {
  const ir::Program program = testing::compile_op(R"(
op grouped<H=6, G=3, S=5, E=4>(Q: f32[H,E], K: f32[H/G,S,E]) -> (A: f32[H,S]) where H % G == 0 {
  A[h,s] = sum[e] Q[h,e] * K[h/G,s,e];
})");
  Spec spec = lift_or_die(program);
  CHECK(factor_axes(spec) == "h = (h_o, h_i)");
  CHECK(text_of(spec, spec.outputs[0].value) == "sum[e] (Q[h_o*3 + h_i, e]*K[h_o, s, e])");
  const Result<Lowered> lowered = lower(spec);
  REQUIRE_OK(lowered);
  INFO(ir::print(lowered->program));
  CHECK(ir::check_equivalent(program, lowered->program).ok());
  CHECK(factor_axes(spec) == "");
}

TEST_CASE("axes that divide nothing evenly are not factored") {
  Spec spec = lift_or_die(testing::compile_op(R"(
op odd<H=7, G=3, E=4>(Q: f32[H,E], K: f32[3,E]) -> (A: f32[H]) {
  A[h] = sum[e] Q[h,e] * K[h/G,e];
})"));
  CHECK(factor_axes(spec) == "");
}

}  // namespace
}  // namespace prunerc::search::algebra
