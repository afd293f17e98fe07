// Terms by hand: small operators over named axes, for tests of the algebra.
#ifndef PRUNERC_TESTS_SEARCH_ALGEBRA_TERMS_H_
#define PRUNERC_TESTS_SEARCH_ALGEBRA_TERMS_H_

#include "ir/lang/lang.h"
#include "search/algebra/lift.h"
#include "search/algebra/term.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::testing {

/// The program of an operator's text; fails the test with its diagnostics otherwise.
inline ir::Program compile_op(const std::string& text, const std::string& op = "",
                              const std::map<std::string, std::string>& bindings = {}) {
  lang::CompileInput input;
  input.file_name = "test.prn";
  input.text = text;
  input.op = op;
  input.bindings = bindings;
  const lang::LangResult compiled = lang::compile(input);
  INFO(compiled.rendered);
  REQUIRE(compiled.program.has_value());
  return *compiled.program;
}

/// The terms of a program that has some; fails the test otherwise.
inline search::algebra::Spec lift_or_die(const ir::Program& program) {
  Result<search::algebra::Spec> spec = search::algebra::lift(program);
  REQUIRE_OK(spec);
  return std::move(*spec);
}

/// A term graph with its axes, and short names for what tests write most.
struct Terms {
  using TermId = search::algebra::TermId;
  using AxisId = search::algebra::AxisId;

  search::algebra::TermGraph g;
  std::vector<search::algebra::Axis> axes;

  AxisId axis(std::string name, int64_t extent) {
    axes.push_back({std::move(name), extent});
    return static_cast<AxisId>(axes.size()) - 1;
  }
  TermId load(int buffer, std::initializer_list<AxisId> at) {
    std::vector<search::algebra::Subscript> index;
    for (const AxisId a : at) index.push_back(search::algebra::plain_subscript(a));
    return g.load(ir::BufferId(buffer), index, ir::DType::kF32);
  }
  TermId number(double value) { return g.constant(value, ir::DType::kF32); }
  TermId sum(AxisId axis, TermId x) { return reduce(ir::ExprKind::kAdd, axis, x); }
  TermId max(AxisId axis, TermId x) { return reduce(ir::ExprKind::kMax, axis, x); }
  TermId reduce(ir::ExprKind kind, AxisId axis, TermId x) {
    return g.reduce(kind, search::algebra::axis_bit(axis), x);
  }
  TermId exp(TermId x) { return g.call(ir::Intrinsic::kExp, x); }
  TermId sqrt(TermId x) { return g.call(ir::Intrinsic::kSqrt, x); }
  std::string text(TermId id) const {
    return search::algebra::to_string(g, id, axes, {"A", "B", "C", "D", "E", "F", "G", "H"});
  }

  /// What computes these.
  search::algebra::Spec spec(std::initializer_list<TermId> outputs) const {
    search::algebra::Spec out;
    out.axes = axes;
    out.graph = g;
    int buffer = 100;
    for (const TermId id : outputs) out.outputs.push_back({ir::BufferId(buffer++), {}, id});
    return out;
  }
};

/// out[t, n] = sum[k] A[t, k] / sqrt(sum[k] A[t, k]^2 / K + eps) * B[k] * C[k, n].
struct RmsNormLinear : Terms {
  AxisId t, k, n;
  TermId x, gamma, w, mean, norm, out;
  explicit RmsNormLinear(int64_t num_rows = 16, int64_t num_inner = 4096, int64_t num_outer = 6144,
                         bool has_eps = true) {
    t = axis("t", num_rows);
    k = axis("k", num_inner);
    n = axis("n", num_outer);
    x = load(0, {t, k});
    gamma = load(1, {k});
    w = load(2, {k, n});
    mean = g.div(sum(k, g.mul(x, x)), number(static_cast<double>(num_inner)));
    if (has_eps) mean = g.add(mean, number(0.0009765625));
    norm = g.mul(g.div(x, sqrt(mean)), gamma);
    out = sum(k, g.mul(norm, w));
  }
};

/// Scores s[t, k] = sum[e] A[t, e] * B[k, e]; weights exp(s - shift) / their sum; out = weights * C.
struct Attention : Terms {
  AxisId t, k, e;
  TermId score, largest, raw, shifted, raw_out, shifted_out;
  explicit Attention(int64_t num_queries = 64, int64_t num_keys = 128, int64_t head = 32) {
    t = axis("t", num_queries);
    k = axis("k", num_keys);
    e = axis("e", head);
    score = sum(e, g.mul(load(0, {t, e}), load(1, {k, e})));
    largest = max(k, score);
    raw = softmax(exp(score));
    shifted = softmax(exp(g.sub(score, largest)));
    raw_out = sum(k, g.mul(raw, load(2, {k, e})));
    shifted_out = sum(k, g.mul(shifted, load(2, {k, e})));
  }
  TermId softmax(TermId weights) { return g.div(weights, sum(k, weights)); }
};

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SEARCH_ALGEBRA_TERMS_H_
