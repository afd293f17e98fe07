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

/// out[i] = op(a[i], b[i], c[i]) for one block of SymbolCode::kBlock values. `out` is none of
/// the operands' blocks.
void run_operation(SymOp op, double* out, BlockOperand a, BlockOperand b, BlockOperand c);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_SYMBOL_KERNELS_H_
