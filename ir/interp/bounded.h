// Numbers with an error bound: the arithmetic of reference values.
#ifndef PRUNERC_IR_INTERP_BOUNDED_H_
#define PRUNERC_IR_INTERP_BOUNDED_H_

#include "ir/expr.h"

#include <cmath>
#include <cstdint>

namespace prunerc::ir {

/// A float value in double with a bound of what rounding may add; or an integer, which is exact
/// unless `error` says that a float decided it.
struct Bounded {
  double value = 0;
  int64_t integer = 0;
  double error = 0;
};

/// Largest relative error of one rounding to the type; 0 for integers.
double unit_roundoff(DType dtype);
/// Adds one rounding to `dtype`, underflow included.
Bounded rounded(DType dtype, Bounded x);
/// Of what tf32 does not hold, by dropping 13 of 24 bits or by rounding them off.
inline constexpr double kTf32Error = 0x1p-10;
/// Adds what becomes of an f32 value that tf32 does not hold: an error of that part of it.
Bounded cut_to_tf32(Bounded x, double part);
/// Add .. Max of floats, before rounding. Comparisons are not among them.
Bounded combine_floats(ExprKind kind, const Bounded& a, const Bounded& b);
/// An intrinsic on floats, with a few units for the approximation that a kernel uses, before the
/// final rounding.
Bounded call_bounded(Intrinsic intrinsic, DType dtype, const Bounded& x, const Bounded& y,
                     const Bounded& z);
/// What the error of a sum of `count` terms in `dtype` may be, given the sum of their absolute
/// values.
double sum_error(DType dtype, int64_t count, double sum_of_magnitudes);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_BOUNDED_H_
