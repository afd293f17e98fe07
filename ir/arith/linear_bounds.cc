// Bounds of normal forms: variables at the ends of their ranges, tile parameters from their least
// value.
#include "ir/arith/linear.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

// Shifting parameters multiplies the number of terms by 2^degree; beyond this the plain interval
// has to do.
constexpr std::size_t kMaxShiftedTerms = 64;
// More eliminations than any loop nest has variables.
constexpr int kMaxEliminations = 64;

Interval term_interval(const Term& t, const VarRanges& ranges) {
  Interval product = Interval::point(t.coef);
  for (Expr atom : t.factors()) product = product * interval_of(atom, ranges);
  return product;
}

Interval plain_interval(const Linear& linear, const VarRanges& ranges) {
  Interval sum = Interval::point(linear.constant);
  for (const Term& t : linear.terms) sum = sum + term_interval(t, ranges);
  return sum;
}

// The polynomial with every atom x of least value l > 0 written as l + x', bounded over x' >= 0:
// terms with positive coefficients then vanish at the lower end, which the plain interval of a
// difference such as T0*T1 - T0 misses.
std::optional<Interval> shifted_interval(const Linear& linear, const VarRanges& ranges) {
  Linear shifted = Linear::of(linear.constant);
  bool any = false;
  for (const Term& t : linear.terms) {
    Linear product = Linear::of(t.coef);
    for (Expr atom : t.factors()) {
      const Interval bound = interval_of(atom, ranges);
      const bool shift = bound.lo != Interval::kNoLower && bound.lo != 0;
      any = any || shift;
      Linear factor = Linear::of(atom);
      if (shift) factor.constant = bound.lo;
      std::optional<Linear> next = multiply(product, factor);
      if (!next.has_value()) return std::nullopt;
      product = *std::move(next);
    }
    shifted = shifted + product;
    if (shifted.terms.size() > kMaxShiftedTerms) return std::nullopt;
  }
  if (!any || shifted.overflow) return std::nullopt;
  Interval sum = Interval::point(shifted.constant);
  for (const Term& t : shifted.terms) {
    Interval product = Interval::point(t.coef);
    for (Expr atom : t.factors()) {
      const Interval bound = interval_of(atom, ranges);
      const bool shift = bound.lo != Interval::kNoLower && bound.lo != 0;
      product = product * (shift ? bound - Interval::point(bound.lo) : bound);
    }
    sum = sum + product;
  }
  return sum;
}

Interval polynomial_interval(const Linear& linear, const VarRanges& ranges) {
  const Interval plain = plain_interval(linear, ranges);
  if (plain.is_bounded() && linear.terms.size() <= 1) return plain;
  const bool symbolic = std::any_of(linear.terms.begin(), linear.terms.end(), [&](const Term& t) {
    return t.degree > 1 || !interval_of(t.atoms[0], ranges).is_bounded();
  });
  if (!symbolic) return plain;
  const std::optional<Interval> shifted = shifted_interval(linear, ranges);
  return shifted.has_value() ? intersect(plain, *shifted) : plain;
}

// linear = coefficient * var + rest. False if var appears with a higher power.
bool split_at(const Linear& linear, VarId var, Linear* coefficient, Linear* rest) {
  *coefficient = Linear();
  *rest = Linear::of(linear.constant);
  coefficient->has_data = linear.has_data;
  rest->has_data = linear.has_data;
  for (const Term& t : linear.terms) {
    int count = 0;
    Term without = t;
    without.degree = 0;
    for (Expr atom : t.factors()) {
      const Var* v = atom.as<Var>();
      if (v != nullptr && v->id == var) {
        ++count;
      } else {
        without.atoms[static_cast<std::size_t>(without.degree++)] = atom;
      }
    }
    if (count == 0) {
      rest->terms.push_back(t);
    } else if (count > 1) {
      return false;
    } else if (without.degree == 0) {
      coefficient->constant += without.coef;
    } else {
      coefficient->terms.push_back(without);
    }
  }
  // Dropping one factor may disturb the order of the coefficient's terms.
  std::sort(coefficient->terms.begin(), coefficient->terms.end(),
            [](const Term& x, const Term& y) { return compare_atoms(x, y) < 0; });
  return true;
}

// An extent as a polynomial without making nodes.
Linear plain_linear(Expr e) {
  if (const BinaryNode* n = as_binary(e)) {
    const Linear a = plain_linear(n->lhs);
    const Linear b = plain_linear(n->rhs);
    if (n->kind == ExprKind::kAdd) return a + b;
    if (n->kind == ExprKind::kSub) return a - b;
    if (n->kind == ExprKind::kMul) {
      if (std::optional<Linear> product = multiply(a, b)) return *std::move(product);
    }
  }
  return Linear::of(e);
}

// A variable whose range, or whose coefficient, is symbolic: the ends have to be put in to see what
// cancels.
const Var* next_symbolic_var(const Linear& linear, const VarRanges& ranges) {
  const Var* bounded = nullptr;
  for (const Term& t : linear.terms) {
    for (Expr atom : t.factors()) {
      const Var* v = atom.as<Var>();
      if (v == nullptr) continue;
      if (ranges.symbolic_extent(v->id).defined()) return v;
      if (t.degree > 1 && ranges.interval(v->id).is_bounded()) bounded = v;
    }
  }
  return bounded;
}

// Puts one end of the variable's range in; nullopt if the sign of its coefficient is not known.
std::optional<Linear> at_end(const Linear& linear, const Var* var, Bound bound,
                             const VarRanges& ranges) {
  Linear coefficient;
  Linear rest;
  if (!split_at(linear, var->id, &coefficient, &rest)) return std::nullopt;
  const Interval sign = polynomial_interval(coefficient, ranges);
  const bool up = sign.lo >= 0;
  if (!up && sign.hi > 0) return std::nullopt;
  const bool at_top = up == (bound == Bound::kUpper);
  const Expr extent = ranges.symbolic_extent(var->id);
  const Interval range = ranges.interval(var->id);
  const Linear value = at_top && extent.defined() ? plain_linear(extent) + -1
                                                  : Linear::of(at_top ? range.hi : range.lo);
  std::optional<Linear> product = multiply(coefficient, value);
  if (!product.has_value()) return std::nullopt;
  Linear sum = rest + *product;
  if (ranges.domain() != nullptr) sum = reduce_tiles(sum, *ranges.domain());
  return sum;
}

std::optional<int64_t> symbolic_bound(Linear linear, Bound bound, const VarRanges& ranges) {
  for (int step = 0; step < kMaxEliminations; ++step) {
    const Var* var = next_symbolic_var(linear, ranges);
    if (var == nullptr) break;
    std::optional<Linear> next = at_end(linear, var, bound, ranges);
    if (!next.has_value() || next->overflow) return std::nullopt;
    linear = *std::move(next);
  }
  const Interval result = polynomial_interval(linear, ranges);
  return bound == Bound::kLower ? result.lo : result.hi;
}

Bound opposite(Bound bound) { return bound == Bound::kLower ? Bound::kUpper : Bound::kLower; }

// The least or largest value of an atom that holds inner variables, as a normal form over the
// others.
std::optional<Linear> atom_at_end(IrBuilder& b, Expr atom, Bound bound, const VarRanges& ranges,
                                  std::span<const VarId> inner) {
  const BinaryNode* n = as_binary(atom);
  auto side = [&](Expr e) {
    return eliminate_vars(b, to_linear(b, e, ranges), bound, ranges, inner);
  };
  if (n != nullptr && (n->kind == ExprKind::kMin || n->kind == ExprKind::kMax)) {
    const std::optional<Linear> x = side(n->lhs);
    const std::optional<Linear> y = side(n->rhs);
    if (x.has_value() && y.has_value()) {
      return to_linear(b, b.binary(n->kind, to_expr(b, *x), to_expr(b, *y)), ranges);
    }
  }
  const bool divides = n != nullptr && n->kind == ExprKind::kFloorDiv;
  if (divides && !mentions(n->rhs, inner) && interval_of(n->rhs, ranges).lo > 0) {
    if (const std::optional<Linear> x = side(n->lhs)) {
      return to_linear(b, b.floordiv(to_expr(b, *x), n->rhs), ranges);
    }
  }
  // A symbolic end cancels against others, which a bound of it would not.
  if (n != nullptr && n->kind == ExprKind::kFloorMod && !mentions(n->rhs, inner) &&
      interval_of(n->rhs, ranges).lo > 0 &&
      (n->rhs.kind() != ExprKind::kIntImm || !interval_of(atom, ranges).is_bounded())) {
    return bound == Bound::kLower ? Linear::of(0) : to_linear(b, n->rhs, ranges) + -1;
  }
  const Interval range = interval_of(atom, ranges);
  const int64_t end = bound == Bound::kLower ? range.lo : range.hi;
  if (end == Interval::kNoLower || end == Interval::kNoUpper) return std::nullopt;
  return Linear::of(end);
}

// Replaces non-variable atoms that hold inner variables, one per step.
std::optional<Linear> eliminate_atoms(IrBuilder& b, Linear linear, Bound bound,
                                      const VarRanges& ranges, std::span<const VarId> inner) {
  Linear out = Linear::of(linear.constant);
  for (const Term& t : linear.terms) {
    Term rest = t;
    rest.degree = 0;
    Expr replaced;
    for (Expr atom : t.factors()) {
      if (atom.kind() == ExprKind::kVar || !mentions(atom, inner)) {
        rest.atoms[static_cast<std::size_t>(rest.degree++)] = atom;
      } else if (replaced.defined()) {
        return std::nullopt;
      } else {
        replaced = atom;
      }
    }
    if (!replaced.defined()) {
      out = out + Linear::of(t);
      continue;
    }
    const Interval sign = term_interval(rest, ranges);
    if (sign.lo < 0 && sign.hi > 0) return std::nullopt;
    const Bound end = sign.lo >= 0 ? bound : opposite(bound);
    const std::optional<Linear> value = atom_at_end(b, replaced, end, ranges, inner);
    if (!value.has_value()) return std::nullopt;
    const std::optional<Linear> product = multiply(Linear::of(rest), *value);
    if (!product.has_value()) return std::nullopt;
    out = out + *product;
  }
  return out;
}

// The common case in one pass: inner variables with constant ends stand alone in their terms. False
// if not so.
bool eliminate_plain(const Linear& linear, Bound bound, const VarRanges& ranges,
                     std::span<const VarId> inner, Linear* out) {
  out->constant = linear.constant;
  out->has_data = linear.has_data;
  out->terms.reserve(linear.terms.size());
  for (const Term& t : linear.terms) {
    if (std::none_of(t.factors().begin(), t.factors().end(),
                     [&](Expr atom) { return mentions(atom, inner); })) {
      out->terms.push_back(t);
      continue;
    }
    const Var* var = t.atoms[0].as<Var>();
    if (t.degree != 1 || var == nullptr || ranges.symbolic_extent(var->id).defined()) return false;
    const Interval range = ranges.interval(var->id);
    if (!range.is_bounded()) return false;
    const bool at_top = (t.coef > 0) == (bound == Bound::kUpper);
    int64_t value = 0;
    if (__builtin_mul_overflow(t.coef, at_top ? range.hi : range.lo, &value)) return false;
    if (__builtin_add_overflow(out->constant, value, &out->constant)) return false;
  }
  return true;
}

bool take_tile(Term& t, const TileVector& tile) {
  Term rest = t;
  rest.degree = 0;
  std::size_t found = 0;
  std::vector<ParamId> wanted(tile.params.begin(), tile.params.end());
  for (Expr atom : t.factors()) {
    const TileParam* p = atom.as<TileParam>();
    const auto at = p != nullptr ? std::find(wanted.begin(), wanted.end(), p->id) : wanted.end();
    if (at != wanted.end()) {
      wanted.erase(at);
      ++found;
    } else {
      rest.atoms[static_cast<std::size_t>(rest.degree++)] = atom;
    }
  }
  if (found != tile.params.size()) return false;
  if (__builtin_mul_overflow(rest.coef, tile.extent, &rest.coef)) return false;
  t = rest;
  return true;
}

}  // namespace

Linear reduce_tiles(const Linear& linear, const Domain& domain) {
  if (domain.tiles.empty()) return linear;
  Linear out = Linear::of(linear.constant);
  out.overflow = linear.overflow;
  out.has_data = linear.has_data;
  bool changed = false;
  for (const Term& t : linear.terms) {
    Term reduced = t;
    for (const TileVector& tile : domain.tiles) {
      if (tile.kind != TileKind::kPerfect || tile.params.empty()) continue;
      if (static_cast<std::size_t>(reduced.degree) < tile.params.size()) continue;
      while (take_tile(reduced, tile)) changed = true;
    }
    out = out + Linear::of(reduced);
  }
  return changed ? out : linear;
}

Interval interval_of(const Linear& linear, const VarRanges& ranges) {
  if (linear.overflow) return Interval::all();
  Interval result = polynomial_interval(linear, ranges);
  if (!linear.terms.empty() && next_symbolic_var(linear, ranges) != nullptr) {
    if (const auto lo = symbolic_bound(linear, Bound::kLower, ranges)) {
      result.lo = std::max(result.lo, *lo);
    }
    if (const auto hi = symbolic_bound(linear, Bound::kUpper, ranges)) {
      result.hi = std::min(result.hi, *hi);
    }
  }
  return linear.has_data && !result.is_bounded() ? Interval::all() : result;
}

std::optional<Linear> eliminate_vars(IrBuilder& b, const Linear& linear, Bound bound,
                                     const VarRanges& ranges, std::span<const VarId> inner) {
  if (linear.overflow) return std::nullopt;
  Linear plain;
  if (eliminate_plain(linear, bound, ranges, inner, &plain)) return plain;
  std::optional<Linear> now = eliminate_atoms(b, linear, bound, ranges, inner);
  // Innermost first: an extent may mention variables further out.
  for (std::size_t i = inner.size(); i-- > 0 && now.has_value();) {
    const Var* var = nullptr;
    for (const Term& t : now->terms) {
      for (Expr atom : t.factors()) {
        const Var* v = atom.as<Var>();
        if (v != nullptr && v->id == inner[i]) var = v;
      }
    }
    if (var == nullptr) continue;
    const Interval range = ranges.interval(var->id);
    const Expr extent = ranges.symbolic_extent(var->id);
    Linear coefficient;
    Linear rest;
    if (!split_at(*now, var->id, &coefficient, &rest)) return std::nullopt;
    const Interval sign = interval_of(coefficient, ranges);
    if (sign.lo < 0 && sign.hi > 0) return std::nullopt;
    const bool at_top = (sign.lo >= 0) == (bound == Bound::kUpper);
    Linear value = Linear::of(at_top ? range.hi : range.lo);
    if (at_top && extent.defined()) {
      value = to_linear(b, extent, ranges) + -1;
    } else if ((at_top ? range.hi : range.lo) ==
               (at_top ? Interval::kNoUpper : Interval::kNoLower)) {
      return std::nullopt;
    }
    const std::optional<Linear> product = multiply(coefficient, value);
    if (!product.has_value()) return std::nullopt;
    now = rest + *product;
    if (ranges.domain() != nullptr) now = reduce_tiles(*now, *ranges.domain());
  }
  if (now.has_value() && now->overflow) return std::nullopt;
  return now;
}

}  // namespace prunerc::ir
