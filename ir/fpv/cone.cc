#include "ir/fpv/cone.h"

#include "ir/fpv/field.h"
#include "ir/support/check.h"
#include "ir/support/hash.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

namespace prunerc::ir {
namespace {

/// Times p, the chance that a difference of degree 1 vanishes modulo p where there are exponentials:
/// 1/p + 4/q, q = (p - 1) / 2.
constexpr double kLostWeight = 9;
/// Times p, at most: the chance that p is one of the primes.
constexpr double kPrimeWeight = 0x1p31 / kNumSafePrimes;
constexpr double kBitsOfQ = 29;
/// Whole numbers that some functions keep: so many, of at most this magnitude (world.cc).
constexpr double kNumWhole = 513, kLargestWhole = 256;

bool is_constant(const FpCone& a) { return a.num == 0 && a.den == 0; }

// Of each part.
template <typename Op>
FpPoints each(const FpPoints& a, const FpPoints& b, const FpSize& kept, const FpSize& exponent,
              double degree, const Op& op) {
  return {op(a.hashed, b.hashed),
          op(a.squares, b.squares),
          op(a.lost, b.lost),
          op(a.weight, b.weight),
          op(a.weight2, b.weight2),
          kept,
          op(a.whole, b.whole),
          op(a.powers, b.powers),
          exponent,
          degree};
}

FpSize exponents(const FpPoints& a, const FpPoints& b) {
  if (a.powers == 0) return b.exponent;
  return b.powers == 0 ? a.exponent : join(a.exponent, b.exponent);
}

// A sum of constants has no inputs that stand in one term.
FpSize sum_as(const FpSize& sum, bool is_constant) {
  FpSize out = sum;
  if (is_constant) out.term = out.high;
  return out;
}

uint64_t hash_of(const FpSize& size) {
  uint64_t h = 0;
  for (const double part :
       {size.low, size.high, size.term, size.den, size.constant, size.odd.times}) {
    h = hash_combine(h, hash_double(part));
  }
  if (size.odd.power == 0) return h;
  for (const double part : {size.odd.base, size.odd.power, size.odd.largest}) {
    h = hash_combine(h, hash_double(part));
  }
  return h;
}

}  // namespace

FpPoints operator+(const FpPoints& a, const FpPoints& b) {
  return each(a, b, join(a.kept, b.kept), exponents(a, b), std::max(a.degree, b.degree),
              std::plus<>());
}

FpPoints operator*(double n, const FpPoints& a) {
  return each(a, a, a.kept, a.exponent, a.degree, [n](double x, double) { return n * x; });
}

FpPoints at_most(const FpPoints& a, const FpPoints& b) {
  const bool a_is_less = bits_of_difference(a.kept, a.kept) < bits_of_difference(b.kept, b.kept);
  const bool a_has_less = bits_of_term_difference(a.exponent) < bits_of_term_difference(b.exponent);
  return each(a, b, a_is_less ? a.kept : b.kept, a_has_less ? a.exponent : b.exponent,
              std::min(a.degree, b.degree), [](double x, double y) { return std::min(x, y); });
}

FpCone opaque_cone() {
  FpCone out = kAtomCone;
  out.size.term = -std::numeric_limits<double>::infinity();
  return out;
}

FpCone cone_of(double constant) {
  FpCone out;
  out.size = size_of(constant);
  return out;
}

FpCone join(const FpCone& a, const FpCone& b) {
  return {std::max(a.num, b.num), std::max(a.den, b.den), a.is_term && b.is_term,
          each(a.points, b.points, join(a.points.kept, b.points.kept),
               exponents(a.points, b.points), std::max(a.points.degree, b.points.degree),
               [](double x, double y) { return std::max(x, y); }),
          join(a.size, b.size)};
}

FpCone sum(const FpCone& a, const FpCone& b) {
  const FpPoints points = a.points + b.points;
  const FpSize size = sum_as(sum(a.size, b.size), is_constant(a) && is_constant(b));
  if (a.den == 0 && b.den == 0) return {std::max(a.num, b.num), 0, false, points, size};
  return {std::max(a.num + b.den, b.num + a.den), a.den + b.den, false, points, size};
}

FpCone product(const FpCone& a, const FpCone& b) {
  const bool is_term = (a.is_term && is_constant(b)) || (b.is_term && is_constant(a));
  return {a.num + b.num, a.den + b.den, is_term, a.points + b.points, product(a.size, b.size)};
}

FpCone quotient(const FpCone& a, const FpCone& b) {
  const bool is_term = a.is_term && is_constant(b);
  return {a.num + b.den, a.den + b.num, is_term, a.points + b.points, quotient(a.size, b.size)};
}

FpCone sum_of(double n, const FpCone& each) {
  if (n == 1) return each;
  // Over the product of all denominators.
  return {each.num + (n - 1) * each.den, n * each.den, false, n * each.points,
          sum_as(sum_of(n, each.size), is_constant(each))};
}

FpCone product_of(double n, const FpCone& each) {
  if (n == 1) return each;
  return {n * each.num, n * each.den, false, n * each.points, product_of(n, each.size)};
}

FpCone extreme_of(const FpCone& a, double n, const FpCone& b, const FpPoints& made) {
  const FpCone one = join(a, b);
  FpCone out = join(kAtomCone, one);
  // Inputs stand in the values alone.
  out.size.term = one.size.term;
  out.points = a.points + n * b.points + made;
  return out;
}

FpPoints point(const FpCone& argument, FpKinds kinds) {
  const double degree = argument.num + argument.den;
  FpPoints out;
  out.hashed = 1;
  out.squares = (degree + 1) * (degree + 1);
  out.degree = degree;
  if (kinds.kept) out.kept = argument.size;
  if (!kinds.lost) return out;
  out.lost = 1;
  // Shares of two arguments: floor((x + y + 1) / 29) is at most floor((x + 15) / 29) + floor((y + 15) / 29).
  const double primes = primes_in(bits_in_differences(argument.size) + 15, kBitsOfQ);
  out.weight = (argument.is_term ? 1 : kLostWeight * (degree + 1)) + kPrimeWeight * primes;
  out.weight2 = out.weight * out.weight;
  return out;
}

FpPoints call_point(const FpCone& argument, FpKinds kinds) {
  FpPoints out = point(argument, kinds);
  if (!kinds.kept) return out;
  out.kept = join(out.kept, size_below(kLargestWhole));
  // A prime that divides what is no constant does so whatever is subtracted.
  out.whole = is_constant(argument) ? kNumWhole : 1;
  return out;
}

FpPoints exponent_point(const FpCone& exponent) {
  FpPoints out;
  out.powers = 1;
  out.exponent = exponent.size;
  return out;
}

double primes_of_exponents(const FpPoints& a, double degree) {
  if (a.powers == 0) return 0;
  const double bits = bits_of_term_difference(a.exponent) + std::log2(std::max(1.0, degree));
  return a.powers * primes_in(bits, kBitsOfQ);
}

std::size_t FpCones::Hash::operator()(const FpCone& cone) const {
  const FpPoints& points = cone.points;
  uint64_t h = hash_combine(cone.is_term ? 1 : 0, hash_of(cone.size));
  for (const double part : {cone.num, cone.den, points.hashed, points.powers}) {
    h = hash_combine(h, hash_double(part));
  }
  if (points.powers != 0) h = hash_combine(h, hash_of(points.exponent));
  if (points.hashed == 0) return h;
  h = hash_combine(h, hash_of(points.kept));
  for (const double part :
       {points.squares, points.lost, points.weight, points.weight2, points.whole, points.degree}) {
    h = hash_combine(h, hash_double(part));
  }
  return h;
}

FpCone FpCones::make(FpConeOp op, uint32_t a, uint32_t b) const {
  switch (op) {
    case FpConeOp::kJoin: return join(at(a), at(b));
    case FpConeOp::kSum: return sum(at(a), at(b));
    case FpConeOp::kDifference: {
      FpCone negative = at(b);
      negative.size.constant = 0 - negative.size.constant;
      return sum(at(a), negative);
    }
    case FpConeOp::kProduct: return product(at(a), at(b));
    case FpConeOp::kQuotient: return quotient(at(a), at(b));
    case FpConeOp::kSumOf: return sum_of(b, at(a));
    case FpConeOp::kProductOf: return product_of(b, at(a));
  }
  PRUNERC_UNREACHABLE("operation on cones");
}

uint32_t FpCones::made_of(FpConeOp op, uint32_t a, uint32_t b) {
  if (op == FpConeOp::kJoin && a == b) return a;
  const bool is_count = op == FpConeOp::kSumOf || op == FpConeOp::kProductOf;
  // What stands for several has changed since.
  const uint32_t last = static_cast<uint32_t>(all_.size()) - 1;
  if (is_full_ && (a == last || (b == last && !is_count))) return id_of(make(op, a, b));
  const uint64_t key = hash_combine(static_cast<uint64_t>(op), uint64_t{a} << 32 | b);
  Made& made = made_[key % kMade];
  if (made.op == op && made.a == a && made.b == b) return made.out;
  made = {op, a, b, id_of(make(op, a, b))};
  return made.out;
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
