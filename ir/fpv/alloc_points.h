// Where each intermediate buffer lives, derived from its accesses. Internal.
#ifndef PRUNERC_IR_FPV_ALLOC_POINTS_H_
#define PRUNERC_IR_FPV_ALLOC_POINTS_H_

#include "ir/program.h"

#include <unordered_map>
#include <vector>

namespace prunerc::ir {

/// The loops that each intermediate is inside of, outermost first: those around all of its
/// accesses, up to the first that carries values in it (a loop of a reduction) or is vectorized.
/// What was written in one iteration of them must not be read in another: lowering gives each
/// iteration storage of its own. Buffers with an Alloc are left out.
std::unordered_map<BufferId, std::vector<const Loop*>> find_alloc_points(const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_ALLOC_POINTS_H_
