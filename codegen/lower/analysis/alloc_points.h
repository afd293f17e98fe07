// Where the Alloc of an intermediate belongs: the loops inside of which it begins and ends.
#ifndef PRUNERC_CODEGEN_LOWER_ANALYSIS_ALLOC_POINTS_H_
#define PRUNERC_CODEGEN_LOWER_ANALYSIS_ALLOC_POINTS_H_

#include "ir/builder.h"

#include <map>
#include <vector>

namespace prunerc::codegen {

/// By intermediate: the loops around its Alloc, outermost first; none: the root.
using AllocPoints = std::map<ir::BufferId, std::vector<const ir::Loop*>>;

/// The innermost loops that are around all accesses of a buffer, but outside of loops that carry
/// values in it (those of reductions) and of vectorized loops (whose lanes need an element each).
AllocPoints find_alloc_points(const ir::Program& program);

/// The program's root with an Alloc at each point.
ir::Stmt insert_allocs(ir::IrBuilder& b, const ir::Program& program, const AllocPoints& points);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_ANALYSIS_ALLOC_POINTS_H_
