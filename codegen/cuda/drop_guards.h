// Conditions that the text of a kernel can do without.
#ifndef PRUNERC_CODEGEN_CUDA_DROP_GUARDS_H_
#define PRUNERC_CODEGEN_CUDA_DROP_GUARDS_H_

#include "ir/arith/interval.h"
#include "ir/builder.h"
#include "ir/program.h"

#include <span>

namespace prunerc::codegen {

/// The lowered program for print_cuda, without conditions in the tiles that a thread computes where
/// they do not matter, and with those that do not change in a loop outside of it. No program to
/// check: it may read elements that were never written, for results that nobody reads.
ir::Program drop_guards(const ir::Program& lowered);

/// Is the element one of its buffer's, and no divisor 0, for all that the ranges allow?
bool is_in_shape(ir::IrBuilder& b, ir::BufferId id, std::span<const ir::Expr> indices,
                 const ir::VarRanges& ranges);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CUDA_DROP_GUARDS_H_
