#include "ir/fpv/field.h"

#include "ir/support/check.h"

#include <cmath>

namespace prunerc::ir {
namespace {

uint32_t pow_mod(uint64_t base, uint32_t exponent, uint32_t n) {
  uint64_t result = 1;
  for (base %= n; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = result * base % n;
    base = base * base % n;
  }
  return static_cast<uint32_t>(result);
}

// Whether n = d * 2^s + 1 passes the strong test to base a.
bool passes(uint32_t n, uint32_t a, uint32_t d, int s) {
  uint64_t x = pow_mod(a, d, n);
  if (x == 1 || x == n - 1) return true;
  for (int i = 1; i < s; ++i) {
    x = x * x % n;
    if (x == n - 1) return true;
  }
  return false;
}

}  // namespace

Modulus::Modulus(uint32_t modulus) : m(modulus) {
  PRUNERC_CHECK(m % 2 == 1 && m >= 3 && m < (uint32_t{1} << 31), "an odd modulus below 2^31");
  uint32_t inverse_of_m = m;  // correct to 3 bits; each step doubles them
  for (int i = 0; i < 4; ++i) inverse_of_m *= 2 - m * inverse_of_m;
  minus_inverse = 0 - inverse_of_m;
  one = static_cast<uint32_t>((uint64_t{1} << 32) % m);
  square = static_cast<uint32_t>(uint64_t{one} * one % m);
}

uint32_t Modulus::pow(uint32_t a, uint64_t exponent) const {
  uint32_t result = one;
  for (; exponent > 0; exponent >>= 1) {
    if ((exponent & 1) != 0) result = mul(result, a);
    a = mul(a, a);
  }
  return result;
}

uint32_t Modulus::of(int64_t value) const {
  int64_t rest = value % static_cast<int64_t>(m);
  if (rest < 0) rest += static_cast<int64_t>(m);
  return mul(static_cast<uint32_t>(rest), square);
}

uint32_t Modulus::of_dyadic(int64_t numerator, int exponent) const {
  const uint32_t two = of(2);
  const uint32_t scale = exponent >= 0 ? pow(two, static_cast<uint64_t>(exponent))
                                       : inverse(pow(two, static_cast<uint64_t>(-exponent)));
  return mul(of(numerator), scale);
}

Dyadic dyadic_of(double value) {
  Dyadic out;
  const double fraction = std::frexp(value, &out.exponent);
  out.odd = static_cast<int64_t>(std::ldexp(fraction, 53));
  out.exponent -= 53;
  while (out.odd != 0 && out.odd % 2 == 0) {
    out.odd /= 2;
    ++out.exponent;
  }
  return out;
}

bool is_prime(uint32_t n) {
  constexpr uint32_t kSmall[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37};
  if (n < 2) return false;
  for (uint32_t small : kSmall) {
    if (n % small == 0) return n == small;
  }
  uint32_t d = n - 1;
  int s = 0;
  for (; d % 2 == 0; d /= 2) ++s;
  // Below 3,215,031,751 four bases leave no composite; two more cover all 32 bits.
  for (uint32_t base : {2U, 3U, 5U, 7U, 11U, 13U}) {
    if (!passes(n, base, d, s)) return false;
  }
  return true;
}

uint32_t random_safe_prime(Rng& rng, const PrimeRange& range) {
  PRUNERC_CHECK(range.low < range.high && range.high <= (uint32_t{1} << 31), "a range of primes");
  while (true) {
    // p = 7 (mod 8) and q odd: p is drawn among the numbers of that form.
    const uint64_t draw = range.low + rng.below(range.high - range.low);
    const auto p = static_cast<uint32_t>(draw);
    if (p % 8 != 7 || p < 23) continue;
    const uint32_t q = (p - 1) / 2;
    if (q % 3 == 0 || p % 3 == 0 || q % 5 == 0 || p % 5 == 0) continue;
    if (is_prime(q) && is_prime(p)) return p;
  }
}

}  // namespace prunerc::ir
