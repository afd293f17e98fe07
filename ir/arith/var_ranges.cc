// VarRanges: scopes of variables and facts, and what a fact says about single variables.
#include "ir/arith/interval.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

// Facts are propagated into nested sums this deep; each level evaluates intervals of the siblings.
constexpr int kMaxNarrowDepth = 8;

}  // namespace

VarRanges::VarRanges(const Domain& domain) : domain_(&domain) {
  params_.assign(domain.names.size(), Interval{1, Interval::kNoUpper});
  auto narrow_param = [&](ParamId id, Interval bound) {
    Interval& slot = params_[static_cast<std::size_t>(id.value)];
    slot = intersect(slot, bound);
  };
  for (const TileVector& tile : domain.tiles) {
    for (std::size_t i = 0; i < tile.params.size(); ++i) {
      // The outermost of covering tiles is a ceiling; the inner ones may exceed nothing but their
      // own cap.
      const bool bounded = tile.kind == TileKind::kPerfect || i == 0;
      if (bounded) narrow_param(tile.params[i], {1, tile.extent});
    }
    if (tile.max_innermost > 0 && !tile.params.empty()) {
      narrow_param(tile.params.back(), {1, tile.max_innermost});
    }
  }
  for (const Choice& choice : domain.choices) {
    if (choice.values.empty()) continue;
    const auto [lo, hi] = std::minmax_element(choice.values.begin(), choice.values.end());
    params_[static_cast<std::size_t>(choice.param.value)] = {*lo, *hi};
  }
}

void VarRanges::bind(const Var* var, Expr extent) {
  Interval bound = interval_of(extent, *this);
  bound = {0, bound.hi == Interval::kNoUpper ? bound.hi : bound.hi - 1};
  entries_.push_back({var->id, bound, extent});
}

void VarRanges::bind(VarId var, Interval interval) { entries_.push_back({var, interval, Expr()}); }

void VarRanges::assume(Expr condition) { add_fact(condition, true); }
void VarRanges::assume_not(Expr condition) { add_fact(condition, false); }

void VarRanges::add_fact(Expr condition, bool holds) {
  if (!condition.defined() || condition.kind() == ExprKind::kIntImm) return;
  if (const Not* n = condition.as<Not>()) return add_fact(n->operand, !holds);
  const ExprKind splits = holds ? ExprKind::kAnd : ExprKind::kOr;
  if (condition.kind() == splits) {
    const BinaryNode* n = as_binary(condition);
    add_fact(n->lhs, holds);
    add_fact(n->rhs, holds);
    return;
  }
  facts_.push_back({condition, holds});
  narrow(condition, holds);
}

void VarRanges::narrow(Expr condition, bool holds) {
  const BinaryNode* n = as_binary(condition);
  if (n == nullptr || n->kind < ExprKind::kEq || n->kind > ExprKind::kLe) return;
  if (n->lhs.dtype() != DType::kI64) return;
  const Interval a = interval_of(n->lhs, *this);
  const Interval b = interval_of(n->rhs, *this);
  // What lies at least `gap` below the bound, or above it.
  auto below = [](Interval bound, int64_t gap) {
    return Interval{Interval::kNoLower, (bound - Interval::point(gap)).hi};
  };
  auto above = [](Interval bound, int64_t gap) {
    return Interval{(bound + Interval::point(gap)).lo, Interval::kNoUpper};
  };
  auto remove_end = [](Interval from, Interval value) {
    if (value.is_point() && from.lo == value.lo) ++from.lo;
    if (value.is_point() && from.hi == value.lo) --from.hi;
    return from;
  };
  switch (n->kind) {
    case ExprKind::kEq:
    case ExprKind::kNe:
      if ((n->kind == ExprKind::kEq) == holds) {
        narrow_expr(n->lhs, b, 0);
        narrow_expr(n->rhs, a, 0);
      } else {
        narrow_expr(n->lhs, remove_end(a, b), 0);
        narrow_expr(n->rhs, remove_end(b, a), 0);
      }
      break;
    case ExprKind::kLt:
    case ExprKind::kLe: {
      // lhs < rhs, or not: rhs <= lhs.
      const int64_t gap = (n->kind == ExprKind::kLt) == holds ? 1 : 0;
      narrow_expr(n->lhs, holds ? below(b, gap) : above(b, gap), 0);
      narrow_expr(n->rhs, holds ? above(a, gap) : below(a, gap), 0);
      break;
    }
    default: break;
  }
}

void VarRanges::narrow_expr(Expr e, Interval bound, int depth) {
  if (bound.is_empty() || bound == Interval::all() || depth > kMaxNarrowDepth) return;
  if (const Var* v = e.as<Var>()) {
    const Interval now = interval(v->id);
    const Interval next = intersect(now, bound);
    if (!(next == now) && !next.is_empty()) entries_.push_back({v->id, next, extent(v->id)});
    return;
  }
  const BinaryNode* n = as_binary(e);
  if (n == nullptr || n->dtype != DType::kI64) return;
  if (has_data(e) && !interval_of(e, *this).is_bounded()) return;  // it may have wrapped
  const IntImm* factor = n->rhs.as<IntImm>();
  const bool by_positive = factor != nullptr && factor->value > 0;
  switch (n->kind) {
    case ExprKind::kAdd:
      narrow_expr(n->lhs, bound - interval_of(n->rhs, *this), depth + 1);
      narrow_expr(n->rhs, bound - interval_of(n->lhs, *this), depth + 1);
      break;
    case ExprKind::kSub:
      narrow_expr(n->lhs, bound + interval_of(n->rhs, *this), depth + 1);
      narrow_expr(n->rhs, interval_of(n->lhs, *this) - bound, depth + 1);
      break;
    case ExprKind::kMul:
      if (!by_positive) break;
      if (bound.lo != Interval::kNoLower) bound.lo = ceil_div(bound.lo, factor->value);
      if (bound.hi != Interval::kNoUpper) bound.hi = floor_div(bound.hi, factor->value);
      narrow_expr(n->lhs, bound, depth + 1);
      break;
    case ExprKind::kFloorDiv:
      if (!by_positive) break;
      narrow_expr(n->lhs,
                  {(Interval::point(bound.lo) * Interval::point(factor->value)).lo,
                   (Interval::point(bound.hi) * Interval::point(factor->value) +
                    Interval::point(factor->value - 1))
                       .hi},
                  depth + 1);
      break;
    default: break;
  }
}

void VarRanges::rewind(Mark mark) {
  entries_.resize(mark.num_entries);
  facts_.resize(mark.num_facts);
}

Interval VarRanges::interval(VarId var) const {
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it) {
    if (it->var == var) return it->interval;
  }
  return Interval::all();
}

Interval VarRanges::interval(ParamId param) const {
  const auto i = static_cast<std::size_t>(param.value);
  return i < params_.size() ? params_[i] : Interval{1, Interval::kNoUpper};
}

Expr VarRanges::extent(VarId var) const {
  for (auto it = entries_.rbegin(); it != entries_.rend(); ++it) {
    if (it->var == var) return it->extent;
  }
  return {};
}

Expr VarRanges::symbolic_extent(VarId var) const {
  const Expr found = extent(var);
  return found.defined() && found.kind() == ExprKind::kIntImm ? Expr() : found;
}

bool VarRanges::knows(VarId var) const {
  return std::any_of(entries_.begin(), entries_.end(),
                     [&](const Entry& e) { return e.var == var; });
}

}  // namespace prunerc::ir
