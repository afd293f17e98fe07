#include "ir/fpv/size.h"

#include "ir/fpv/field.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>

namespace prunerc::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr FpSize kZero = {kInfinity, -kInfinity, -kInfinity, 0, 0, {}};
constexpr FpSize kUnbounded = {-kInfinity, kInfinity, kInfinity, kInfinity, 0, {}};
constexpr double kExact = 0x1p53;  // whole numbers below are doubles
// Logarithms are rounded by less.
constexpr double kRounding = 0x1p-20;

bool is_zero(const FpSize& a) { return a.low == kInfinity; }

FpSize bounded(const FpSize& a) {
  return std::isfinite(a.low) && std::isfinite(a.high + a.den) ? a : kUnbounded;
}

// log2(2^a + 2^b).
double log_sum(double a, double b) {
  if (a == b) return a + 1;
  return std::max(a, b) + std::log2(1 + std::exp2(-std::fabs(a - b)));
}

double common_multiple(double a, double b) {
  if (a == b) return a;
  if (std::isinf(a) || std::isinf(b)) return kInfinity;
  const uint64_t shared = std::gcd(static_cast<uint64_t>(a), static_cast<uint64_t>(b));
  const double out = a / static_cast<double>(shared) * b;
  return out < kExact ? out : kInfinity;
}

// The least common multiple of 1 to n is below 3^n (Hanson 1972), n! is n^n at most.
double bits_of(const FpOdd& a) {
  if (a.power == 0) return 0;
  const double base = std::isinf(a.base) ? a.largest * std::log2(3) : std::log2(a.base);
  return std::min(a.power * base, a.times * a.largest * std::log2(a.largest));
}

// What both divide.
FpOdd common(const FpOdd& a, const FpOdd& b) {
  if (a == b) return a;
  return {common_multiple(a.base, b.base), std::max(a.power, b.power),
          std::max(a.largest, b.largest), std::max(a.times, b.times)};
}

// Times the odd number m, which divides c. n!^k c divides c!^k where c is larger than n.
FpOdd times(const FpOdd& a, double m, double c) {
  if (m == 1) return a;
  if (a.power == 0) return {m, 1, c, 1};
  return {common_multiple(a.base, m), a.power + 1, std::max(a.largest, c),
          c > a.largest ? a.times : a.times + 1};
}

bool is_one_factor(const FpOdd& a) {
  return a.power == 1 && a.times == 1 && std::fmod(a.largest, a.base) == 0;
}

FpOdd product(const FpOdd& a, const FpOdd& b) {
  if (b.power == 0) return a;
  if (a.power == 0) return b;
  if (is_one_factor(b)) return times(a, b.base, b.largest);
  if (is_one_factor(a)) return times(b, a.base, a.largest);
  return {common_multiple(a.base, b.base), a.power + b.power, std::max(a.largest, b.largest),
          a.times + b.times};
}

// Whether what is known of a and b together is far more than a and b.
bool is_far(const FpOdd& both, const FpOdd& a, const FpOdd& b) {
  constexpr double kFactor = 4, kBits = 64;
  return both.power > 0 && bits_of(both) > kFactor * (bits_of(a) + bits_of(b)) + kBits;
}

// Whether the odd number of b as a factor of Q is no more than a has there.
bool has_room(const FpSize& a, const FpSize& b) {
  return a.odd.power == 0 && b.odd.power > 0 && a.den >= b.den + bits_of(b.odd);
}

// With the odd number as a factor of Q.
FpSize bare(const FpSize& a) {
  const double bits = bits_of(a.odd);
  return {a.low, a.high + bits, a.term + bits, a.den + bits, 0, {}};
}

}  // namespace

FpSize size_of(double constant) {
  if (constant == 0) return kZero;
  const double size = std::log2(std::fabs(constant));
  return {static_cast<double>(dyadic_of(constant).exponent), size, size, 0, constant, {}};
}

FpSize size_below(double magnitude) {
  if (magnitude == 0) return kZero;
  const double size = std::log2(magnitude);
  return {0, size, size, 0, 0, {}};
}

FpSize join(const FpSize& a, const FpSize& b) {
  if (a == b) return a;
  // Else joins with one number after the other would add to Q each time.
  if (has_room(a, b)) return join(a, bare(b));
  if (has_room(b, a)) return join(b, bare(a));
  const FpOdd odd = common(a.odd, b.odd);
  if (is_far(odd, a.odd, b.odd)) return join(bare(a), bare(b));
  return {std::min(a.low, b.low),
          std::max(a.high, b.high),
          std::max(a.term, b.term),
          std::max(a.den, b.den),
          0,
          odd};
}

FpSize sum(const FpSize& a, const FpSize& b) {
  if (is_zero(a)) return b;
  if (is_zero(b)) return a;
  if (a.constant != 0 && b.constant != 0) {
    const double s = a.constant + b.constant;
    const double part = s - a.constant;
    // Nothing was rounded off.
    if ((a.constant - (s - part)) + (b.constant - part) == 0) return size_of(s);
  }
  const FpOdd odd = common(a.odd, b.odd);
  if (is_far(odd, a.odd, b.odd)) return sum(bare(a), bare(b));
  return bounded({std::min(a.low, b.low), log_sum(a.high + b.den, b.high + a.den),
                  std::max(a.term + b.den, b.term + a.den), a.den + b.den, 0, odd});
}

FpSize product(const FpSize& a, const FpSize& b) {
  if (is_zero(a) || is_zero(b)) return kZero;
  if (a.constant != 0 && b.constant != 0) {
    const double x = a.constant * b.constant;
    if (std::fabs(x) > 0x1p-900 && std::fma(a.constant, b.constant, -x) == 0) return size_of(x);
  }
  const FpOdd odd = product(a.odd, b.odd);
  if (is_far(odd, a.odd, b.odd)) return product(bare(a), bare(b));
  // An input of one stands beside all terms of the other; a constant has none.
  const double in_a = a.constant != 0 ? -kInfinity : a.term + b.high;
  const double in_b = b.constant != 0 ? -kInfinity : b.term + a.high;
  const bool is_constant = a.constant != 0 && b.constant != 0;
  const double term = is_constant ? a.high + b.high : std::max(in_a, in_b);
  return bounded({a.low + b.low, a.high + b.high, term, a.den + b.den, 0, odd});
}

FpSize quotient(const FpSize& a, const FpSize& b) {
  if (is_zero(a) || is_zero(b)) return a;
  if (b.constant == 0) {
    // Both times what makes P of b whole.
    const double whole = bits_of(b.odd) - b.low;
    return bounded({a.low - b.low, a.high + b.den + whole, a.term + b.den + whole,
                    a.den + b.high + whole, 0, a.odd});
  }
  const double x = a.constant / b.constant;
  if (std::fabs(x) > 0x1p-900 && std::fma(x, b.constant, -a.constant) == 0) return size_of(x);
  const Dyadic by = dyadic_of(b.constant);
  const double m = std::fabs(static_cast<double>(by.odd));
  const double size = std::fabs(b.constant), bits = std::log2(size);
  const bool is_whole = by.exponent >= 0 && size < kExact;
  const FpOdd odd = times(a.odd, m, is_whole ? size : m);
  if (is_far(odd, a.odd, {m, 1, m, 1})) return quotient(bare(a), b);
  return bounded({a.low - by.exponent, a.high - bits, a.term - bits, a.den, 0, odd});
}

FpSize sum_of(double n, const FpSize& each) {
  if (n == 1 || is_zero(each)) return each;
  const double s = n * each.constant;
  if (each.constant != 0 && std::fma(n, each.constant, -s) == 0) return size_of(s);
  const double others = (n - 1) * each.den;
  return bounded(
      {each.low, each.high + others + std::log2(n), each.term + others, n * each.den, 0, each.odd});
}

FpSize product_of(double n, const FpSize& each) {
  if (n == 1 || is_zero(each)) return each;
  const FpOdd& k = each.odd;
  return bounded({n * each.low,
                  n * each.high,
                  (n - 1) * each.high + each.term,
                  n * each.den,
                  0,
                  {k.base, n * k.power, k.largest, n * k.times}});
}

double bits_of(const FpSize& a) { return std::max(0.0, a.high - a.low + bits_of(a.odd)); }

double bits_of_difference(const FpSize& a, const FpSize& b) {
  FpSize x = a, y = b;
  // They may have either sign.
  x.constant = y.constant = 0;
  return bits_of(sum(x, y));
}

double bits_of_term_difference(const FpSize& a) {
  if (a.term == -kInfinity) return 0;
  FpSize x = a;
  x.high = x.term;
  return bits_of_difference(x, x);
}

double bits_in_differences(const FpSize& a) {
  return std::max({a.high, a.den, 0.0}) + std::max(-a.low, 0.0) + bits_of(a.odd);
}

double primes_in(double bits, double of_prime) { return std::floor((bits + kRounding) / of_prime); }

}  // namespace prunerc::ir
