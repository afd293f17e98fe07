// Homes of intermediates: the loops inside of which each one begins and ends.
#ifndef PRUNERC_CODEGEN_LOWER_HOMES_H_
#define PRUNERC_CODEGEN_LOWER_HOMES_H_

#include "ir/builder.h"

#include <map>
#include <vector>

namespace prunerc::codegen {

/// By intermediate: the loops around its Alloc, outermost first; none: the root.
using Homes = std::map<ir::BufferId, std::vector<const ir::Loop*>>;

/// The innermost loops that are around all accesses of a buffer, but outside of loops that carry
/// values in it (those of reductions) and of vectorized loops (whose lanes need an element each).
Homes find_homes(const ir::Program& program);

/// The program's root with an Alloc in each home.
ir::Stmt insert_allocs(ir::IrBuilder& b, const ir::Program& program, const Homes& homes);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_HOMES_H_
