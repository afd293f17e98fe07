// One operation over one block of candidates.
#ifndef PRUNERC_COSTMODEL_SYMBOL_KERNELS_H_
#define PRUNERC_COSTMODEL_SYMBOL_KERNELS_H_

#include "costmodel/symbol/op.h"

#include <cstddef>

namespace prunerc::costmodel {

/// A block of values, or one value for all.
struct BlockOperand {
  const double* data = nullptr;
  bool is_scalar = false;
};

/// Counts of values are multiples of this, so that loops have no remainders.
inline constexpr std::size_t kKernelStep = 32;

/// out[i] = op(a[i], b[i], c[i]) for the first n values of a block; n is a multiple of kKernelStep.
/// `out` is none of the operands' blocks.
void run_operation(SymOp op, double* out, BlockOperand a, BlockOperand b, BlockOperand c,
                   std::size_t n);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_SYMBOL_KERNELS_H_
