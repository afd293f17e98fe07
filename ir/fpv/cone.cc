#include "ir/fpv/cone.h"

#include "ir/support/hash.h"

#include <algorithm>
#include <cmath>
#include <functional>

namespace prunerc::ir {
namespace {

/// Times p, the chance that a difference of degree 1 vanishes modulo p where there are exponentials:
/// 1/p + 4/q, q = (p - 1) / 2.
constexpr double kLostWeight = 9;

bool is_constant(const FpCone& a) { return a.num == 0 && a.den == 0; }

// Of each part.
template <typename Op>
FpPoints each(const FpPoints& a, const FpPoints& b, const Op& op) {
  return {op(a.hashed, b.hashed), op(a.squares, b.squares), op(a.lost, b.lost),
          op(a.weight, b.weight), op(a.weight2, b.weight2)};
}

}  // namespace

FpPoints operator+(const FpPoints& a, const FpPoints& b) { return each(a, b, std::plus<>()); }

FpPoints operator*(double n, const FpPoints& a) {
  return each(a, a, [n](double x, double) { return n * x; });
}

FpPoints at_most(const FpPoints& a, const FpPoints& b) {
  return each(a, b, [](double x, double y) { return std::min(x, y); });
}

FpCone cone_of(double constant) {
  const double size = std::fabs(constant);
  // Others may be the extremes of a type, which are opaque as what is beyond them (world.cc).
  return size == 0 || (size > 0x1p-100 && size < 0x1p15) ? FpCone{} : kAtomCone;
}

FpCone join(const FpCone& a, const FpCone& b) {
  return {std::max(a.num, b.num), std::max(a.den, b.den), a.is_term && b.is_term,
          each(a.points, b.points, [](double x, double y) { return std::max(x, y); })};
}

FpCone sum(const FpCone& a, const FpCone& b) {
  const FpPoints points = a.points + b.points;
  if (a.den == 0 && b.den == 0) return {std::max(a.num, b.num), 0, false, points};
  return {std::max(a.num + b.den, b.num + a.den), a.den + b.den, false, points};
}

FpCone product(const FpCone& a, const FpCone& b) {
  const bool is_term = (a.is_term && is_constant(b)) || (b.is_term && is_constant(a));
  return {a.num + b.num, a.den + b.den, is_term, a.points + b.points};
}

FpCone quotient(const FpCone& a, const FpCone& b) {
  const bool is_term = a.is_term && is_constant(b);
  return {a.num + b.den, a.den + b.num, is_term, a.points + b.points};
}

FpCone sum_of(double n, const FpCone& each) {
  if (n == 1) return each;
  // Over the product of all denominators.
  return {each.num + (n - 1) * each.den, n * each.den, false, n * each.points};
}

FpCone product_of(double n, const FpCone& each) {
  if (n == 1) return each;
  return {n * each.num, n * each.den, false, n * each.points};
}

FpCone extreme_of(const FpCone& a, double n, const FpCone& b, const FpPoints& made) {
  FpCone out = join(kAtomCone, join(a, b));
  out.points = a.points + n * b.points + made;
  return out;
}

FpPoints point(const FpCone& argument, bool may_be_lost) {
  const double degree = argument.num + argument.den;
  const double square = (degree + 1) * (degree + 1);
  if (!may_be_lost) return {1, square, 0, 0, 0};
  const double weight = argument.is_term ? 1 : kLostWeight * (degree + 1);
  return {1, square, 1, weight, weight * weight};
}

std::size_t FpCones::Hash::operator()(const FpCone& cone) const {
  const FpPoints& points = cone.points;
  uint64_t h = cone.is_term ? 1 : 0;
  for (const double part : {cone.num, cone.den, points.hashed, points.squares, points.lost,
                            points.weight, points.weight2}) {
    h = hash_combine(h, hash_double(part));
  }
  return h;
}

uint32_t FpCones::id_of(const FpCone& cone) {
  if (all_[last_] == cone) return last_;
  if (const auto at = ids_.find(cone); at != ids_.end()) return last_ = at->second;
  if (all_.size() < most_) {
    last_ = ids_.emplace(cone, static_cast<uint32_t>(all_.size())).first->second;
    all_.push_back(cone);
    return last_;
  }
  if (!is_full_) ids_.erase(all_.back());
  is_full_ = true;
  all_.back() = join(all_.back(), cone);
  return last_ = static_cast<uint32_t>(all_.size()) - 1;
}

}  // namespace prunerc::ir
