// The meaning of single operations: integers, floats rounded to their type, intrinsics. One place
// for all evaluators.
#ifndef PRUNERC_IR_INTERP_EVALUATE_H_
#define PRUNERC_IR_INTERP_EVALUATE_H_

#include "ir/expr.h"
#include "ir/int_math.h"

#include <cstdint>

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

/// An intrinsic on values of `dtype`, computed in double and rounded; `fma` has a single rounding in every
/// type. Unused arguments are ignored.
double call_float(Intrinsic intrinsic, DType dtype, double x, double y, double z);

/// min and max of floats: the second operand if either is NaN, like the x86 instructions.
inline double min_float(double a, double b) { return a < b ? a : b; }
inline double max_float(double a, double b) { return a > b ? a : b; }

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_EVALUATE_H_
