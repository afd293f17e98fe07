#include "ir/arith/simplify.h"

#include "ir/arith/simplifier.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "ir/visit.h"

#include <algorithm>
#include <utility>

namespace prunerc::ir {
namespace {

// Deeper expressions are returned as they are: the recursion must not exhaust the stack.
constexpr int kMaxDepth = 1000;
// Normal forms found deeper may have been cut short by kMaxDepth, so they are not kept.
constexpr int kMaxMemoDepth = 200;
// expr_size stops counting here, and what is larger is not touched: a tree with much sharing may be
// exponentially large.
constexpr int64_t kMaxSize = 20'000;

void count_nodes(Expr e, int64_t* size) {
  if (++*size >= kMaxSize) return;
  for_each_child(e, [&](Expr child) {
    if (*size < kMaxSize) count_nodes(child, size);
  });
}

bool is_index_arithmetic(Expr e) {
  const ExprKind k = e.kind();
  return e.dtype() == DType::kI64 &&
         (k == ExprKind::kAdd || k == ExprKind::kSub || k == ExprKind::kMul ||
          k == ExprKind::kFloorDiv || k == ExprKind::kFloorMod);
}

bool is_comparison(Expr e) { return e.kind() >= ExprKind::kEq && e.kind() <= ExprKind::kLe; }

// Constants beyond this stay where they are: added to the other side they might leave 64 bits.
constexpr int64_t kMaxMoved = int64_t{1} << 62;

bool can_move(int64_t constant) { return -kMaxMoved <= constant && constant <= kMaxMoved; }

// The terms with positive coefficients, and the others negated.
std::pair<Linear, Linear> split_by_sign(const Linear& linear) {
  Linear positive, negative;
  for (const Term& t : linear.terms) {
    if (t.coef > 0) {
      positive = positive + Linear::of(t);
    } else {
      negative = negative - Linear::of(t);
    }
  }
  return {positive, negative};
}

}  // namespace

int64_t expr_size(Expr e) {
  int64_t size = 0;
  count_nodes(e, &size);
  return size;
}

Simplifier::Simplifier(IrBuilder& b, const VarRanges& ranges, const SimplifyOptions& options)
    : b_(b), ranges_(ranges), options_(options), fuel_(options.fuel) {
  const std::span<const SimplifyRule> rules = simplify_rules();
  if (options.rule_counts != nullptr) options.rule_counts->resize(rules.size());
  if (options.disabled_rules.empty()) return;
  disabled_.resize(rules.size());
  for (std::size_t i = 0; i < rules.size(); ++i) {
    disabled_[i] = std::find(options.disabled_rules.begin(), options.disabled_rules.end(),
                             rules[i].name) != options.disabled_rules.end();
  }
}

Expr Simplifier::visit(Expr e) {
  if (const Var* v = e.as<Var>()) {
    const Interval range = ranges_.interval(v->id);
    return range.is_point() ? b_.int_imm(range.lo) : e;
  }
  if (const TileParam* p = e.as<TileParam>()) {
    const Interval range = ranges_.interval(p->id);
    return range.is_point() ? b_.int_imm(range.lo) : e;
  }
  if (e.kind() == ExprKind::kIntImm || e.kind() == ExprKind::kFloatImm) return e;
  if (depth_ >= kMaxDepth || !take_fuel()) return e;
  if (keep_loads_ && e.kind() == ExprKind::kLoad) return e;
  ++depth_;
  Expr result;
  if (is_index_arithmetic(e)) {
    result = visit_arithmetic(e);
  } else if (is_comparison(e)) {
    result = visit_comparison(e);
  } else if (e.kind() == ExprKind::kAnd || e.kind() == ExprKind::kOr) {
    result = visit_logic(e);
  } else if (e.kind() == ExprKind::kSelect) {
    result = visit_select(e);
  } else {
    result = apply_rules(visit_children(e));
  }
  --depth_;
  return structural_equal(result, e) ? e : result;
}

Expr Simplifier::visit_children(Expr e) {
  return map_children(b_, e, [this](Expr child) { return visit(child); });
}

Expr Simplifier::visit_arithmetic(Expr e) {
  const Linear normal = linear(e);
  if (normal.overflow) return apply_rules(visit_children(e));
  const Expr result = to_expr(b_, normal);
  return expr_size(result) <= 2 * expr_size(e) ? result : unexpanded(e, expr_size(result));
}

// For an expression whose normal form is too large. Its simplified operands alone may do, unless
// the normal form were small enough for them: the next run would then take it.
Expr Simplifier::unexpanded(Expr e, int64_t normal_size) {
  const Expr result = apply_rules(visit_children(e));
  return normal_size > 2 * expr_size(result) ? result : e;
}

Linear Simplifier::product(const Linear& a, const Linear& b) {
  if (std::optional<Linear> expanded = multiply(a, b)) {
    const Domain* domain = ranges_.domain();
    if (expanded->overflow || domain == nullptr || domain->tiles.empty())
      return *std::move(expanded);
    return reduce_tiles(*expanded, *domain);
  }
  Expr x = to_expr(b_, a);
  Expr y = to_expr(b_, b);
  if (compare_exprs(x, y) > 0) std::swap(x, y);
  return Linear::of(b_.mul(x, y));
}

Linear Simplifier::linear(Expr e) {
  if (!is_index_arithmetic(e)) {
    const Expr simple = visit(e);
    // A rule may have uncovered arithmetic (the branch of a select); anything else is an atom.
    return is_index_arithmetic(simple) && take_fuel() ? linear(simple) : Linear::of(simple);
  }
  if (depth_ >= kMaxDepth || !take_fuel()) return Linear::of(e);
  // Sums are cheap to make again; keeping them costs more than it saves.
  const bool is_division = e.kind() == ExprKind::kFloorDiv || e.kind() == ExprKind::kFloorMod;
  if (!is_division) return linear_of_arithmetic(e);
  if (const auto known = forms_.find(e.node()); known != forms_.end()) return known->second;
  Linear form = linear_of_arithmetic(e);
  // With fuel, depth or facts missing it came out worse than the next one to ask deserves.
  const bool complete = fuel_ > 0 && depth_ < kMaxMemoDepth && !making_facts_;
  if (complete) forms_.emplace(e.node(), form);
  return form;
}

Linear Simplifier::linear_of_arithmetic(Expr e) {
  ++depth_;
  const BinaryNode* n = as_binary(e);
  const Linear a = linear(n->lhs);
  const Linear b = linear(n->rhs);
  Linear result;
  if (n->kind == ExprKind::kAdd) {
    result = recombine(a + b);
  } else if (n->kind == ExprKind::kSub) {
    result = recombine(a - b);
  } else if (n->kind == ExprKind::kMul) {
    result = product(a, b);
  } else {
    result = divide(a, b, n->kind == ExprKind::kFloorDiv ? Part::kQuotient : Part::kRemainder);
  }
  --depth_;
  if (result.overflow) return Linear::of(e);
  const Domain* domain = ranges_.domain();
  return domain == nullptr || domain->tiles.empty() ? result : reduce_tiles(result, *domain);
}

Expr Simplifier::visit_comparison(Expr e) {
  const BinaryNode* n = as_binary(e);
  if (n->lhs.dtype() == DType::kI64) {
    const Linear a = linear(n->lhs);
    const Linear b = linear(n->rhs);
    Linear difference = a - b;
    if (!may_wrap(a) && !may_wrap(b) && !may_wrap(difference)) {
      difference = recombine(difference);
      Expr result;
      if (n->kind == ExprKind::kEq || n->kind == ExprKind::kNe) {
        result = emit_equality(n->kind, difference);
      } else {
        if (n->kind == ExprKind::kLt) difference = difference + 1;
        if (!difference.overflow) result = emit_order(difference);
      }
      const int64_t size = result.defined() ? expr_size(result) : 0;
      if (size > 2 * expr_size(e)) return unexpanded(e, size);
      if (result.defined()) {
        if (result.kind() == ExprKind::kIntImm) return result;
        const std::optional<bool> known = decide(result);
        return known.has_value() ? b_.bool_imm(*known) : result;
      }
    }
  }
  return apply_rules(visit_children(e));
}

Expr Simplifier::emit_equality(ExprKind kind, Linear difference) {
  const Expr unequal = b_.bool_imm(kind == ExprKind::kNe);
  const Interval range = interval_with_facts(difference);
  if (!range.contains(0)) return unequal;
  if (range == Interval::point(0)) return b_.bool_imm(kind == ExprKind::kEq);
  if (difference.terms.empty())
    return b_.bool_imm((difference.constant == 0) == (kind == ExprKind::kEq));
  const int64_t g = coefficient_gcd(difference);
  if (g > 1) {
    if (difference.constant % g != 0) return unequal;
    for (Term& t : difference.terms) t.coef /= g;
    difference.constant /= g;
  }
  if (difference.terms[0].coef < 0) difference = difference * -1;
  auto [left, right] = split_by_sign(difference);
  if (!can_move(difference.constant)) return {};
  (right.terms.empty() || difference.constant < 0 ? right : left).constant =
      right.terms.empty() || difference.constant < 0 ? -difference.constant : difference.constant;
  if (may_wrap(left) || may_wrap(right)) return {};
  return b_.binary(kind, to_expr(b_, left), to_expr(b_, right));
}

// g*A + B + k <= 0 says A <= f if every value of B + k gives the same f = floor(-(B + k) / g).
Linear Simplifier::drop_small_part(const Linear& difference) {
  for (std::size_t i = 0; i < difference.terms.size(); ++i) {
    if (difference.terms[i].coef == Interval::kNoLower) continue;
    const int64_t g = std::abs(difference.terms[i].coef);
    if (g <= 1) continue;
    Linear high;
    Linear low = Linear::of(difference.constant);
    low.has_data = difference.has_data;
    high.has_data = difference.has_data;
    for (Term t : difference.terms) {
      if (t.coef % g == 0) {
        t.coef /= g;
        high.terms.push_back(t);
      } else {
        low.terms.push_back(t);
      }
    }
    if (low.terms.empty()) continue;
    const Interval range = interval_with_facts(low);
    if (!range.is_bounded()) continue;
    const int64_t f = floor_div(-range.lo, g);
    if (f == floor_div(-range.hi, g)) return high + -f;
  }
  return difference;
}

// difference <= 0, with constants moved to the side where they are positive.
Expr Simplifier::emit_order(Linear difference) {
  for (bool changed = true; changed;) {
    const std::optional<bool> known = decide_not_positive(difference);
    if (known.has_value()) return b_.bool_imm(*known);
    const std::size_t num_terms = difference.terms.size();
    difference = drop_small_part(difference);
    changed = difference.terms.size() < num_terms;
    const int64_t g = coefficient_gcd(difference);
    if (difference.overflow || !can_move(difference.constant)) return {};
    if (g <= 1) continue;
    for (Term& t : difference.terms) t.coef /= g;
    difference.constant = -floor_div(-difference.constant, g);
    changed = true;
  }
  auto [left, right] = split_by_sign(difference);
  const int64_t k = difference.constant;
  if (may_wrap(left) || may_wrap(right)) return {};
  if (right.terms.empty()) return b_.lt(to_expr(b_, left), b_.int_imm(1 - k));
  if (left.terms.empty()) return b_.le(b_.int_imm(k), to_expr(b_, right));
  const bool is_less = k >= 1;
  (is_less ? left : right) = is_less ? left + (k - 1) : right + -k;
  if (may_wrap(left) || may_wrap(right)) return {};
  return b_.binary(is_less ? ExprKind::kLt : ExprKind::kLe, to_expr(b_, left), to_expr(b_, right));
}

Expr Simplifier::visit_select(Expr e) {
  const Select* n = e.as<Select>();
  const Expr condition = visit(n->condition);
  if (const IntImm* c = condition.as<IntImm>())
    return visit(c->value != 0 ? n->on_true : n->on_false);
  const Mark outside = mark();
  assume(condition, true);
  const Expr on_true = visit(n->on_true);
  rewind(outside);
  assume(condition, false);
  const Expr on_false = visit(n->on_false);
  rewind(outside);
  const bool same =
      condition.is(n->condition) && on_true.is(n->on_true) && on_false.is(n->on_false);
  return apply_rules(same ? e : b_.select(condition, on_true, on_false));
}

Expr Simplifier::apply_rules(Expr e) {
  const uint32_t bit = uint32_t{1} << static_cast<unsigned>(e.kind());
  const std::span<const SimplifyRule> rules = simplify_rules();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if ((rules[i].kinds & bit) == 0 || (!disabled_.empty() && disabled_[i])) continue;
    const Expr result = rules[i].apply(*this, e);
    if (!result.defined() || result.is(e)) continue;
    if (options_.rule_counts != nullptr) ++(*options_.rule_counts)[i];
    return visit(result);
  }
  return e;
}

Expr simplify(IrBuilder& b, Expr e, const VarRanges& ranges, const SimplifyOptions& options) {
  switch (e.kind()) {  // most subscripts are a variable or a constant
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm: return e;
    case ExprKind::kVar: {
      const Interval range = ranges.interval(e.as<Var>()->id);
      return range.is_point() ? b.int_imm(range.lo) : e;
    }
    default: break;
  }
  return expr_size(e) >= kMaxSize ? e : Simplifier(b, ranges, options).visit(e);
}

Linear to_linear(IrBuilder& b, Expr e, const VarRanges& ranges) {
  const SimplifyOptions options;
  return Simplifier(b, ranges, options).linear(e);
}

}  // namespace prunerc::ir
