// How much a program computes and must move.
#ifndef PRUNERC_IR_ANALYSIS_FLOPS_H_
#define PRUNERC_IR_ANALYSIS_FLOPS_H_

#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>

namespace prunerc::ir {

/// Operations on data by unit, over all iterations. Index arithmetic (subscripts, bindings, guards)
/// is not counted.
struct OpCounts {
  double mul_add = 0;  // float + - *; fma counts two
  double divide = 0;   // float /
  double special = 0;  // exp, log, sqrt, tanh, erf, sin, pow ...
  double compare = 0;  // float min, max, comparisons, selects, abs, rounding
  double integer = 0;  // operations on integer data
  double convert = 0;  // casts
  double loads = 0;    // elements read
  double stores = 0;   // elements written

  /// Float operations in the usual sense: mul_add + divide + special + compare.
  double flops() const { return mul_add + divide + special + compare; }
  OpCounts& operator+=(const OpCounts& other);
  bool operator==(const OpCounts&) const = default;
};

/// Exact when extents are constants. An instance cut off by a block guard or an If is not counted
/// if the condition can be enumerated or factored; else both sides count as taken. Inits count once
/// per output instance. Errors: Unsupported if an extent mentions a tile parameter.
Result<OpCounts> count_ops(const Program& program);
/// One evaluation of an expression.
OpCounts count_ops(Expr e);

/// Bytes of all inputs read once and all outputs written once.
/// Errors: Unsupported if a shape mentions a tile parameter.
Result<int64_t> compulsory_bytes(const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_FLOPS_H_
