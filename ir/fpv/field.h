// Arithmetic modulo primes below 2^31, and random safe primes to compute with.
#ifndef PRUNERC_IR_FPV_FIELD_H_
#define PRUNERC_IR_FPV_FIELD_H_

#include "ir/support/rng.h"

#include <cstdint>

namespace prunerc::ir {

/// Residues modulo an odd m in [3, 2^31) as Montgomery representatives x * 2^32 mod m, each in
/// [0, m): zero is 0, and sums need no conversion. Source: Montgomery 1985.
struct Modulus {
  uint32_t m = 3;
  uint32_t minus_inverse = 0;  // -1/m mod 2^32
  uint32_t one = 0;            // representative of 1
  uint32_t square = 0;         // 2^64 mod m

  Modulus() : Modulus(3) {}
  explicit Modulus(uint32_t modulus);

  /// t / 2^32 mod m for t < m * 2^32.
  uint32_t reduce(uint64_t t) const {
    const uint32_t k = static_cast<uint32_t>(t) * minus_inverse;
    const auto r = static_cast<uint32_t>((t + uint64_t{k} * m) >> 32);
    return r >= m ? r - m : r;
  }
  uint32_t add(uint32_t a, uint32_t b) const {
    const uint32_t s = a + b;
    return s >= m ? s - m : s;
  }
  uint32_t sub(uint32_t a, uint32_t b) const { return a >= b ? a - b : a + m - b; }
  uint32_t mul(uint32_t a, uint32_t b) const { return reduce(uint64_t{a} * b); }
  uint32_t pow(uint32_t a, uint64_t exponent) const;
  /// 1/a; m is prime and a is not 0.
  uint32_t inverse(uint32_t a) const { return pow(a, m - 2); }

  uint32_t of(int64_t value) const;
  /// numerator * 2^exponent.
  uint32_t of_dyadic(int64_t numerator, int exponent) const;
  /// The residue in [0, m) that a representative stands for.
  uint32_t residue(uint32_t a) const { return reduce(a); }
};

/// odd * 2^exponent, where `odd` is 0 or odd.
struct Dyadic {
  int64_t odd = 0;
  int exponent = 0;
};
/// Of a finite number.
Dyadic dyadic_of(double value);

/// Exact for every 32-bit number. Source: Jaeschke 1993 (Miller-Rabin to the bases 2, 3, 5, 7).
bool is_prime(uint32_t n);

/// The safe primes p = 2q + 1 with p = 7 (mod 8) in [low, high).
struct PrimeRange {
  uint32_t low = uint32_t{1} << 30;
  uint32_t high = uint32_t{1} << 31;
};

/// Pairs p, q of such primes that a world has, independent of each other: values are equal by chance only if they are so
/// modulo all.
enum class WorldWidth : uint8_t { kOne, kTwo };

/// What rounding to a narrower float gives: a value of its own, which equal arguments have alike, or what was rounded.
enum class Roundings : uint8_t { kOpaque, kIgnored };

/// Number of such primes in the default range, counted with a sieve.
inline constexpr double kNumSafePrimes = 817'344;

/// A uniformly random one; the range holds at least one. Cost: about 0.1 ms in the default range.
uint32_t random_safe_prime(Rng& rng, const PrimeRange& range = {});

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_FIELD_H_
