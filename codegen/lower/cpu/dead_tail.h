// The dead end of an intermediate's rows: elements that nobody reads, so that whole vectors may
// write them.
#ifndef PRUNERC_CODEGEN_LOWER_CPU_DEAD_TAIL_H_
#define PRUNERC_CODEGEN_LOWER_CPU_DEAD_TAIL_H_

#include "ir/arith/linear.h"
#include "ir/builder.h"

#include <optional>

namespace prunerc::codegen {

/// A condition as `difference < 0`; nullopt if it is no comparison by order, or reads memory.
std::optional<ir::Linear> difference_of(ir::IrBuilder& b, ir::Expr condition,
                                        const ir::VarRanges& ranges);

struct DeadTail {
  ir::Linear end;  // the first dead element of a row, over variables bound outside of the Alloc
  /// Guarded by last < end: only if all of them lose that, all lanes are written.
  int num_stores = 0;
};

/// Where the dead tail of the Alloc's buffer begins, along the innermost dimension, if a row has room
/// for whole vectors; nullopt if that is not to be seen. `ranges` knows the variables around the
/// Alloc, and does so again afterwards. Cost: O(size of its body).
std::optional<DeadTail> find_dead_tail(ir::IrBuilder& b, const ir::Alloc& alloc,
                                       ir::VarRanges& ranges);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_CPU_DEAD_TAIL_H_
