// The meaning of single operations: integers, floats rounded to their type, intrinsics. One place
// for all evaluators.
#ifndef PRUNERC_IR_INTERP_EVALUATE_H_
#define PRUNERC_IR_INTERP_EVALUATE_H_

#include "ir/expr.h"

#include <cstdint>
#include <optional>
#include <span>

namespace prunerc::ir {

/// round_to with the usual types in line.
inline double round_float(DType dtype, double value) {
  if (dtype == DType::kF32) return static_cast<double>(static_cast<float>(value));
  return dtype == DType::kF64 ? value : round_to(dtype, value);
}

/// wrap_to with the usual type in line.
inline int64_t wrap_int(DType dtype, int64_t value) {
  return dtype == DType::kI64 ? value : wrap_to(dtype, value);
}

inline int64_t wrapping_add(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
}
inline int64_t wrapping_sub(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
}
inline int64_t wrapping_mul(int64_t a, int64_t b) {
  return static_cast<int64_t>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
}
/// b is not 0.
inline int64_t floor_div(int64_t a, int64_t b) {
  if (b == -1) return wrapping_sub(0, a);
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}
/// b is not 0. The result has the sign of b.
inline int64_t floor_mod(int64_t a, int64_t b) {
  if (b == -1) return 0;
  const int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

/// An intrinsic on values of `dtype`, computed in double and rounded once; `fma` of f32 has a
/// single rounding too. Unused arguments are ignored.
double call_float(Intrinsic intrinsic, DType dtype, double x, double y, double z);

/// min and max of floats: the second operand if either is NaN, like the x86 instructions; NaN is
/// outside the contract.
inline double min_float(double a, double b) { return a < b ? a : b; }
inline double max_float(double a, double b) { return a > b ? a : b; }

/// The value of an integer or bool expression over tile parameters and constants alone; nullopt if
/// it holds anything else or divides by zero.
std::optional<int64_t> evaluate_params(Expr e, std::span<const int64_t> params);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_EVALUATE_H_
