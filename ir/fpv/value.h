// FpValue: what a float is while a program is checked: a residue modulo p, one modulo q, or a
// special value.
#ifndef PRUNERC_IR_FPV_VALUE_H_
#define PRUNERC_IR_FPV_VALUE_H_

#include "ir/support/hash.h"

#include <cstdint>

namespace prunerc::ir {

/// Representatives (see Modulus) of one value modulo p and modulo q. The top bit of q says that the
/// value has no residue modulo q (it came out of exp); the top bit of p that it is a special value.
struct FpValue {
  uint32_t p = 0;
  uint32_t q = 0;
  bool operator==(const FpValue&) const = default;
  bool is_lost() const { return (q >> 31) != 0; }
  bool is_special() const { return (p >> 31) != 0; }
  uint64_t word() const { return uint64_t{p} << 32 | q; }
};

inline constexpr uint32_t kLost = uint32_t{1} << 31;
inline constexpr FpValue kPlusInfinity = {kLost | 1, 0};
inline constexpr FpValue kMinusInfinity = {kLost | 2, 0};

/// A number in [0, m) from a hash; the bias is below m / 2^32.
constexpr uint32_t hash_below(uint32_t hash, uint32_t m) {
  return static_cast<uint32_t>(uint64_t{hash} * m >> 32);
}

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_VALUE_H_
