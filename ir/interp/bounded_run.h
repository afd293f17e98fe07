// A whole program in double, step by step in its own order, each output with a bound of what rounding may do: the
// reference for programs of any form, as long as they are small.
#ifndef PRUNERC_IR_INTERP_BOUNDED_RUN_H_
#define PRUNERC_IR_INTERP_BOUNDED_RUN_H_

#include "ir/interp/elements.h"

namespace prunerc::ir {

struct BoundedRunOptions {
  int64_t max_steps = 4'000'000;     // stores and loop iterations
  int64_t max_elements = 4'000'000;  // of all buffers together
  double factor_error = 0;           // as in ElementOptions
};

/// All elements of all outputs, in declared order. Bounds are those of ElementEvaluator: sums that a
/// store `x = x + t` accumulates may be taken in any order. Loops of every kind run one iteration
/// after the other.
/// Errors: InterpInput, InterpTooLarge, InterpOutOfBounds, InterpUninitialised, InterpUnwrittenOutput,
/// InterpDivisionByZero, InterpIterRange, InterpStepBudget; Unsupported for a sketch and where floats
/// decide a subscript.
Result<std::vector<std::vector<Reference>>> run_bounded(const Program& program,
                                                        std::span<const Tensor> inputs,
                                                        const BoundedRunOptions& options = {});

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_INTERP_BOUNDED_RUN_H_
