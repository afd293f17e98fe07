// Invariants of the simplifier over random expressions.
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "tests/support/random_expr.h"

#include <catch2/catch.hpp>

#include <functional>

namespace prunerc::ir {
namespace {

constexpr int kNumExprs = 24'000;
constexpr int kNumPoints = 12;

struct Mode {
  const char* name;
  bool with_params;
  bool with_data;
};

// Checks one expression; returns what is wrong, empty if nothing is.
std::string broken_invariant(ExprMaker& maker, Expr e, const VarRanges& ranges, Rng& points,
                             const SimplifyOptions& options = {}) {
  const Expr simple = simplify(maker.b, e, ranges, options);
  if (simple.dtype() != e.dtype()) return "the type changed";
  if (expr_size(simple) > 2 * expr_size(e)) return "it grew: " + show(simple);
  if (structural_equal(simple, e) && !simple.is(e)) return "an equal node was made";
  for (int i = 0; i < kNumPoints; ++i) {
    const Env env = random_env(maker, points);
    const std::optional<int64_t> expected = value_of(e, env);
    if (!expected.has_value()) continue;  // undefined: anything goes
    const std::optional<int64_t> found = value_of(simple, env);
    if (found != expected) {
      std::string at;
      for (const auto& [id, v] : env.vars)
        at += " v" + std::to_string(id) + "=" + std::to_string(v);
      for (const auto& [id, v] : env.params)
        at += " T" + std::to_string(id) + "=" + std::to_string(v);
      return "value " + std::to_string(*expected) + " became " +
             (found.has_value() ? std::to_string(*found) : "undefined") + " at" + at + " in " +
             show(simple);
    }
  }
  const Expr again = simplify(maker.b, simple, ranges, options);
  if (!again.is(simple)) return "not idempotent: " + show(simple) + " then " + show(again);
  return "";
}

}  // namespace

TEST_CASE("simplify keeps values, is idempotent and never doubles the size") {
  const Mode mode = GENERATE(Mode{"index", false, false}, Mode{"params", true, false},
                             Mode{"data", false, true}, Mode{"all", true, true});
  INFO(mode.name);
  int num_checked = 0;
  int num_changed = 0;
  for (int round = 0; round < kNumExprs / 4 / 100; ++round) {
    ExprMaker maker(static_cast<uint64_t>(round) * 7 + (mode.with_params ? 1 : 0));
    maker.with_params = mode.with_params;
    maker.with_data = mode.with_data;
    const VarRanges ranges = maker.ranges();
    Rng points(static_cast<uint64_t>(round), 1);
    for (int i = 0; i < 100; ++i) {
      const Expr e = maker.any(static_cast<int>(maker.rng.between(1, 5)));
      const std::string fault = broken_invariant(maker, e, ranges, points);
      if (!fault.empty()) FAIL_CHECK("round " << round << ": " << show(e) << "\n" << fault);
      ++num_checked;
      num_changed += simplify(maker.b, e, ranges).is(e) ? 0 : 1;
    }
  }
  CHECK(num_checked == kNumExprs / 4);
  CHECK(num_changed > num_checked / 4);  // the test is not about constants alone
}

TEST_CASE("simplification under facts keeps the value wherever they hold") {
  int num_compared = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    ExprMaker maker(seed + 300'000);
    maker.with_data = seed % 4 == 0;
    maker.with_params = seed % 4 == 1;
    std::vector<Expr> facts;
    VarRanges ranges = maker.ranges();
    for (uint64_t i = 0; i < 1 + seed % 3; ++i) {
      facts.push_back(maker.condition(2));
      ranges.assume(facts.back());
    }
    const Expr e = maker.any(4);
    const Expr simple = simplify(maker.b, e, ranges);
    CHECK(simplify(maker.b, simple, ranges).is(simple));
    Rng points(seed, 6);
    for (int i = 0; i < 40; ++i) {
      const Env env = random_env(maker, points);
      bool admitted = true;
      for (Expr fact : facts) admitted = admitted && value_of(fact, env).value_or(0) != 0;
      const std::optional<int64_t> expected = value_of(e, env);
      if (!admitted || !expected.has_value()) continue;
      ++num_compared;
      if (value_of(simple, env) != expected) {
        std::string given;
        for (Expr fact : facts) given += show(fact) + "; ";
        FAIL_CHECK("seed " << seed << ": " << show(e) << " became " << show(simple) << " given "
                           << given);
      }
    }
  }
  CHECK(num_compared > 20'000);
}

TEST_CASE("what data wrap to is the same after simplification") {
  IrBuilder b("wraps");
  const Expr shape[] = {b.int_imm(1)};
  const BufferId buffer = b.add_buffer("A", DType::kI64, shape, Scope::kGlobal, BufferRole::kInput);
  const Expr zero[] = {b.int_imm(0)};
  const Expr word = b.load(buffer, zero);
  // Folds to a constant.
  const std::function<Expr(Expr, int64_t)> at = [&](Expr e, int64_t value) {
    if (e.kind() == ExprKind::kLoad) return b.int_imm(value);
    return map_children(b, e, [&](Expr part) { return at(part, value); });
  };
  const auto check = [&](Expr e) {
    const Expr simple = simplify(b, e, VarRanges());
    for (const int64_t value : {INT64_MIN, INT64_MIN + 1, int64_t{-3}, int64_t{0}, int64_t{7},
                                int64_t{1} << 62, INT64_MAX - 1, INT64_MAX}) {
      if (structural_equal(at(simple, value), at(e, value))) continue;
      FAIL_CHECK(show(e) << " became " << show(simple) << ": of " << value << " it is "
                         << show(at(simple, value)) << ", not " << show(at(e, value)));
    }
  };
  const auto sum = [&](int64_t factor, int64_t constant) {
    return b.add(b.mul(word, b.int_imm(factor)), b.int_imm(constant));
  };
  for (const int64_t x : {-2, -1, 1, 2, 3}) {
    for (const int64_t c : {INT64_MIN, int64_t{-1}, int64_t{0}, int64_t{5}, INT64_MAX}) {
      const Expr lhs = sum(x, c);
      for (const int64_t divisor : {-4, -3, -1, 1, 3, 8}) {
        check(b.floordiv(lhs, b.int_imm(divisor)));
        check(b.floormod(lhs, b.int_imm(divisor)));
      }
      for (const int64_t y : {-1, 1, 2}) {
        for (const int64_t d : {int64_t{0}, int64_t{1}, INT64_MAX}) {
          for (const ExprKind kind : {ExprKind::kMin, ExprKind::kMax, ExprKind::kLt, ExprKind::kLe,
                                      ExprKind::kEq, ExprKind::kNe, ExprKind::kAdd, ExprKind::kSub})
            check(b.binary(kind, lhs, sum(y, d)));
        }
      }
    }
  }
}

TEST_CASE("every rule of the simplifier fires on random expressions or can be switched off alone") {
  std::vector<int64_t> counts;
  ExprMaker maker(99);
  maker.with_data = true;
  const VarRanges ranges = maker.ranges();
  const SimplifyOptions counting = {.disabled_rules = {}, .rule_counts = &counts};
  for (int i = 0; i < 3000; ++i)
    static_cast<void>(simplify(maker.b, maker.any(4), ranges, counting));
  REQUIRE(counts.size() == simplify_rule_names().size());
  int num_used = 0;
  for (int64_t n : counts) num_used += n > 0 ? 1 : 0;
  CHECK(num_used >= 10);
  for (std::size_t rule = 0; rule < simplify_rule_names().size(); ++rule) {
    const std::string_view off[] = {simplify_rule_names()[rule]};
    std::vector<int64_t> without;
    const SimplifyOptions options = {.disabled_rules = off, .rule_counts = &without};
    Rng points(rule, 2);
    for (int i = 0; i < 60; ++i) {
      const Expr e = maker.any(4);
      const std::string fault = broken_invariant(maker, e, ranges, points, options);
      if (!fault.empty()) FAIL_CHECK("without " << off[0] << ": " << show(e) << "\n" << fault);
    }
    CHECK(without[rule] == 0);
  }
}

TEST_CASE("simplify stops when it runs out of fuel and still keeps the value") {
  ExprMaker maker(5);
  const VarRanges ranges = maker.ranges();
  Rng points(5, 3);
  for (int i = 0; i < 500; ++i) {
    const Expr e = maker.index(5);
    const SimplifyOptions options = {.disabled_rules = {}, .rule_counts = nullptr, .fuel = i % 20};
    const Expr simple = simplify(maker.b, e, ranges, options);
    for (int k = 0; k < 4; ++k) {
      const Env env = random_env(maker, points);
      const std::optional<int64_t> expected = value_of(e, env);
      if (expected.has_value()) CHECK(value_of(simple, env) == expected);
    }
  }
}

TEST_CASE("simplify leaves alone an expression whose tree is exponentially large") {
  ExprMaker maker(6);
  Expr e = maker.vars[0];
  for (int i = 0; i < 60; ++i) e = maker.b.min(maker.b.add(e, e), maker.b.mul(e, maker.vars[1]));
  CHECK(simplify(maker.b, e, maker.ranges()).is(e));
}

TEST_CASE("intervals contain every value") {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    ExprMaker maker(seed + 1000);
    maker.with_params = seed % 2 == 1;
    maker.with_data = seed % 3 == 1;
    const VarRanges ranges = maker.ranges();
    Rng points(seed, 4);
    for (int i = 0; i < 100; ++i) {
      const Expr e = maker.any(4);
      const Interval bound = interval_of(e, ranges);
      const Interval tight =
          e.dtype() == DType::kI64 ? interval_of(to_linear(maker.b, e, ranges), ranges) : bound;
      for (int k = 0; k < kNumPoints; ++k) {
        const std::optional<int64_t> v = value_of(e, random_env(maker, points));
        if (!v.has_value()) continue;
        if (!bound.contains(*v)) FAIL_CHECK(show(e) << " has value " << *v);
        if (!tight.contains(*v)) FAIL_CHECK("normal form of " << show(e) << " has value " << *v);
      }
    }
  }
  SUCCEED();
}

}  // namespace prunerc::ir
