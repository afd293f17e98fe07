#include "ir/arith/interval.h"

#include "ir/builder.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

constexpr int64_t kMin = Interval::kNoLower;
constexpr int64_t kMax = Interval::kNoUpper;

bool is_infinite(int64_t v) { return v == kMin || v == kMax; }

int64_t saturate(__int128 v) {
  if (v <= static_cast<__int128>(kMin)) return kMin;
  if (v >= static_cast<__int128>(kMax)) return kMax;
  return static_cast<int64_t>(v);
}

// Below, an end at INT64_MIN or INT64_MAX is "no bound". Where such a number is the end on the other
// side, as in point(INT64_MAX), a wider one takes its place.
Interval widened(Interval a) { return {std::min(a.lo, kMax - 1), std::max(a.hi, -(kMax - 1))}; }

int64_t add_ends(int64_t a, int64_t b) {
  if (is_infinite(a)) return a;
  if (is_infinite(b)) return b;
  return saturate(static_cast<__int128>(a) + b);
}

int64_t negate_end(int64_t a) { return a == kMin ? kMax : a == kMax ? kMin : -a; }

int64_t multiply_ends(int64_t a, int64_t b) {
  if (a == 0 || b == 0) return 0;
  if (is_infinite(a) || is_infinite(b)) return (a < 0) == (b < 0) ? kMax : kMin;
  return saturate(static_cast<__int128>(a) * b);
}

// b is not 0.
int64_t divide_ends(int64_t a, int64_t b) {
  if (is_infinite(b)) return a == 0 || (a < 0) == (b < 0) ? 0 : -1;
  if (is_infinite(a)) return b > 0 ? a : negate_end(a);
  return floor_div(a, b);
}

template <typename F>
Interval corners(Interval a, Interval b, F&& f) {
  const int64_t values[] = {f(a.lo, b.lo), f(a.lo, b.hi), f(a.hi, b.lo), f(a.hi, b.hi)};
  return {*std::min_element(values, values + 4), *std::max_element(values, values + 4)};
}

Interval mod_positive(Interval a, Interval b) {
  if (a.lo >= 0 && a.hi < b.lo) return a;
  if (b.is_point() && a.is_bounded() && floor_div(a.lo, b.lo) == floor_div(a.hi, b.lo)) {
    return {floor_mod(a.lo, b.lo), floor_mod(a.hi, b.lo)};
  }
  int64_t hi = b.hi == kMax ? kMax : b.hi - 1;
  if (a.lo >= 0) hi = std::min(hi, a.hi);
  return {0, hi};
}

Interval type_range(DType t) {
  return is_float(t) ? Interval::all() : Interval{min_int(t), max_int(t)};
}

Interval arithmetic(const BinaryNode& n, Expr e, const VarRanges& ranges) {
  const Interval a = interval_of(n.lhs, ranges);
  const Interval b = interval_of(n.rhs, ranges);
  Interval result;
  switch (n.kind) {
    case ExprKind::kAdd: result = a + b; break;
    case ExprKind::kSub: result = a - b; break;
    case ExprKind::kMul: result = a * b; break;
    case ExprKind::kFloorDiv: result = floor_div(a, b); break;
    case ExprKind::kFloorMod: result = floor_mod(a, b); break;
    case ExprKind::kMin: return min(a, b);
    case ExprKind::kMax: return max(a, b);
    default: return type_range(n.dtype);
  }
  const Interval fits = type_range(n.dtype);
  if (n.dtype != DType::kI64) return fits.contains(result) ? result : fits;
  return result.is_bounded() || !has_data(e) ? result : fits;
}

Interval truth(bool always, bool never) {
  return always ? Interval::point(1) : never ? Interval::point(0) : Interval{0, 1};
}

Interval comparison(const BinaryNode& n, const VarRanges& ranges) {
  if (is_float(n.lhs.dtype())) return {0, 1};
  const Interval a = interval_of(n.lhs, ranges);
  const Interval b = interval_of(n.rhs, ranges);
  const bool apart = a.hi < b.lo || b.hi < a.lo;
  const bool equal = a.is_point() && a == b && !is_infinite(a.lo);
  switch (n.kind) {
    case ExprKind::kEq: return truth(equal, apart);
    case ExprKind::kNe: return truth(apart, equal);
    case ExprKind::kLt: return truth(a.hi < b.lo, b.hi <= a.lo && !is_infinite(a.lo));
    case ExprKind::kLe: return truth(a.hi <= b.lo && !is_infinite(a.hi), b.hi < a.lo);
    case ExprKind::kAnd: return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)};
    case ExprKind::kOr: return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)};
    default: return {0, 1};
  }
}

Interval cast_interval(const Cast& n, const VarRanges& ranges) {
  const Interval fits = type_range(n.dtype);
  if (is_float(n.dtype) || is_float(n.operand.dtype())) return fits;
  const Interval a = interval_of(n.operand, ranges);
  if (is_bool(n.dtype)) return truth(!a.contains(0), a == Interval::point(0));
  return fits.contains(a) ? a : fits;
}

Interval abs_interval(const Call& n, const VarRanges& ranges) {
  const Interval fits = type_range(n.dtype);
  const Interval a = interval_of(n.args[0], ranges);
  if (a.lo <= fits.lo) return fits;  // the absolute value of the least integer wraps
  if (a.lo >= 0) return a;
  const Interval negated = {negate_end(a.hi), negate_end(a.lo)};
  return a.hi <= 0 ? negated : Interval{0, std::max(a.hi, negated.hi)};
}

}  // namespace

Interval operator+(Interval a, Interval b) {
  a = widened(a);
  b = widened(b);
  return {add_ends(a.lo, b.lo), add_ends(a.hi, b.hi)};
}
Interval operator-(Interval a, Interval b) {
  a = widened(a);
  b = widened(b);
  return {add_ends(a.lo, negate_end(b.hi)), add_ends(a.hi, negate_end(b.lo))};
}
Interval operator*(Interval a, Interval b) {
  return corners(widened(a), widened(b), multiply_ends);
}

Interval floor_div(Interval a, Interval b) {
  a = widened(a);
  b = widened(b);
  const Interval positive = {std::max<int64_t>(b.lo, 1), b.hi};
  const Interval negative = {b.lo, std::min<int64_t>(b.hi, -1)};
  if (positive.is_empty() && negative.is_empty()) return Interval::all();
  if (negative.is_empty()) return corners(a, positive, divide_ends);
  if (positive.is_empty()) return corners(a, negative, divide_ends);
  return hull(corners(a, positive, divide_ends), corners(a, negative, divide_ends));
}

Interval floor_mod(Interval a, Interval b) {
  a = widened(a);
  b = widened(b);
  const Interval positive = {std::max<int64_t>(b.lo, 1), b.hi};
  const Interval negative = {b.lo, std::min<int64_t>(b.hi, -1)};
  if (positive.is_empty() && negative.is_empty()) return Interval::all();
  const Interval up = positive.is_empty() ? Interval::point(0) : mod_positive(a, positive);
  if (negative.is_empty()) return up;
  const Interval down = {negative.lo == kMin ? kMin : negative.lo + 1, 0};
  return hull(up, down);
}

Interval min(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::min(a.hi, b.hi)}; }
Interval max(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::max(a.hi, b.hi)}; }
Interval intersect(Interval a, Interval b) { return {std::max(a.lo, b.lo), std::min(a.hi, b.hi)}; }
Interval hull(Interval a, Interval b) { return {std::min(a.lo, b.lo), std::max(a.hi, b.hi)}; }

Interval interval_of(Expr e, const VarRanges& ranges) {
  if (const Var* v = e.as<Var>()) return ranges.interval(v->id);
  if (const TileParam* p = e.as<TileParam>()) return ranges.interval(p->id);
  if (const IntImm* c = e.as<IntImm>()) return Interval::point(c->value);
  if (is_float(e.dtype())) return Interval::all();
  if (const BinaryNode* n = as_binary(e)) {
    return n->kind >= ExprKind::kEq ? comparison(*n, ranges) : arithmetic(*n, e, ranges);
  }
  if (const Not* n = e.as<Not>()) return Interval::point(1) - interval_of(n->operand, ranges);
  if (const Select* s = e.as<Select>()) {
    const Interval c = interval_of(s->condition, ranges);
    if (c == Interval::point(1)) return interval_of(s->on_true, ranges);
    if (c == Interval::point(0)) return interval_of(s->on_false, ranges);
    return hull(interval_of(s->on_true, ranges), interval_of(s->on_false, ranges));
  }
  if (const Cast* c = e.as<Cast>()) return cast_interval(*c, ranges);
  if (const Call* c = e.as<Call>(); c != nullptr && c->intrinsic == Intrinsic::kAbs) {
    return abs_interval(*c, ranges);
  }
  return type_range(e.dtype());
}

}  // namespace prunerc::ir
