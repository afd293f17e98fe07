// Expressions at sample points, floats as real numbers: whether an identity holds can be tried out
// where it is too much to prove.
#ifndef PRUNERC_IR_ANALYSIS_REAL_VALUE_H_
#define PRUNERC_IR_ANALYSIS_REAL_VALUE_H_

#include "ir/expr.h"

#include <cstdint>
#include <functional>

namespace prunerc::ir {

/// The value of an expression: `real` of floats, `integer` of all else.
struct Sample {
  double real = 0;
  int64_t integer = 0;
};

/// Values of variables and of elements.
using LeafFn = std::function<Sample(Expr)>;

/// Integers wrap as they do in programs; floats are not rounded to their type. A division of
/// integers by 0 gives 0.
Sample evaluate_at(Expr e, const LeafFn& leaf);

/// Equal up to the rounding of some double operations; never if one is no number.
bool same_value(DType dtype, Sample a, Sample b);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_REAL_VALUE_H_
