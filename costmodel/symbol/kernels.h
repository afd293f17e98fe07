// One operation over one block of candidates.
#ifndef PRUNERC_COSTMODEL_SYMBOL_KERNELS_H_
#define PRUNERC_COSTMODEL_SYMBOL_KERNELS_H_

#include "costmodel/symbol/op.h"

#include <cstddef>

namespace prunerc::costmodel {

/// Counts of values are multiples of this, so that loops have no remainders.
inline constexpr std::size_t kKernelStep = 32;
/// Blocks begin at multiples of so many bytes: a vector across two cache lines costs two loads.
inline constexpr std::size_t kKernelAlignment = 64;

/// out[i] = op(a[i], b[i], c[i]) for the first n values of a block; n is a multiple of kKernelStep.
/// `out` is none of the operands' blocks; those that the operation does not have are not read.
using Kernel = void (*)(double* out, const double* a, const double* b, const double* c,
                        std::size_t n);

/// Which operands are one value for all instead of a block.
struct Uniform {
  bool a = false, b = false, c = false;
};

/// Whether this machine has vectors of 64 bytes (AVX-512).
bool has_wide_vectors();

/// The operation's kernel, the same bits with either kind of vectors. Of operations with one or two
/// operands some operand is a block.
Kernel kernel_of(SymOp op, Uniform uniform, bool wide_vectors = has_wide_vectors());

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_SYMBOL_KERNELS_H_
