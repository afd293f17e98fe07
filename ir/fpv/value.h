// FpValue: what a float is while a program is checked: a residue modulo p, one modulo q, in wide worlds two more, or a
// special value.
#ifndef PRUNERC_IR_FPV_VALUE_H_
#define PRUNERC_IR_FPV_VALUE_H_

#include "ir/support/hash.h"

#include <array>
#include <cstdint>

namespace prunerc::ir {

/// Representatives (see Modulus) of one value modulo p and modulo q. The top bit of q says that the
/// value has no residue modulo q (it came out of exp); the top bit of p that it is a special value.
struct FpValue {
  uint32_t p = 0;
  uint32_t q = 0;
  uint32_t p2 = 0, q2 = 0;  // the same modulo the second pair of primes of a wide world, else 0
  bool operator==(const FpValue&) const = default;
  constexpr bool is_lost() const { return (q >> 31) != 0; }
  bool is_special() const { return (p >> 31) != 0; }
  uint64_t word() const { return uint64_t{p} << 32 | q; }
  /// With `h`.
  uint64_t hash(uint64_t h) const {
    h = hash_combine(h, word());
    return (p2 | q2) == 0 ? h : hash_combine(h, uint64_t{p2} << 32 | q2);
  }
};

inline constexpr uint32_t kLost = uint32_t{1} << 31;
/// Whether two are equal by all residues that both have.
constexpr bool agree(const FpValue& x, const FpValue& y) {
  if (x.p != y.p || x.p2 != y.p2) return false;
  return x.is_lost() || y.is_lost() || (x.q == y.q && x.q2 == y.q2);
}
inline constexpr FpValue kPlusInfinity = {kLost | 1, 0};
inline constexpr FpValue kMinusInfinity = {kLost | 2, 0};

/// A number in [0, m) from a hash; the bias is below m / 2^64.
constexpr uint32_t hash_below(uint64_t hash, uint32_t m) {
  return static_cast<uint32_t>(static_cast<unsigned __int128>(hash) * m >> 64);
}

/// p, q and the second pair; 0: none.
using FpPrimes = std::array<uint32_t, 4>;
/// Residues from hashes.
constexpr FpValue residues(uint64_t h, uint64_t more, const FpPrimes& primes) {
  FpValue out = {hash_below(h, primes[0]), hash_below(more, primes[1])};
  if (primes[2] == 0) return out;
  const uint64_t third = mix64(more + 0x9E3779B97F4A7C15ULL);
  out.p2 = hash_below(third, primes[2]);
  out.q2 = hash_below(mix64(third + h), primes[3]);
  return out;
}

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_VALUE_H_
