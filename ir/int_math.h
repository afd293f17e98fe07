// Integer arithmetic with the meaning that it has in programs: wrapping, floor division. Total
// where noted.
#ifndef PRUNERC_IR_INT_MATH_H_
#define PRUNERC_IR_INT_MATH_H_

#include <cstdint>

namespace prunerc::ir {

inline int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapping_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
/// Rounds towards minus infinity; b is not 0. The smallest integer divided by -1 wraps.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return wrapping_sub(0, a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
/// Of numbers whose quotient fits.
inline __int128 floor_div(__int128 a, __int128 b) {
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
/// Rounds towards infinity; b is not 0.
inline int64_t ceil_div(int64_t a, int64_t b) { return -floor_div(-a, b); }
/// The remainder of floor_div, with the sign of b; b is not 0.
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INT_MATH_H_
