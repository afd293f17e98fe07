// The same operator with other extents: what a small twin of a program starts from.
#ifndef PRUNERC_SCHEDULE_TWIN_SHRINK_H_
#define PRUNERC_SCHEDULE_TWIN_SHRINK_H_

#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <unordered_map>

namespace prunerc::schedule {

/// Extents of loops.
using LoopExtents = std::unordered_map<ir::LoopId, int64_t>;

/// `base`, an unscheduled program of constant extents, with extents as wanted where that is
/// consistent: loops that index one dimension get the largest extent wanted of any, loops whose
/// extent follows from a compound index (a padded copy of a convolution's input) get what follows,
/// dimensions and the constants that indices are compared with shrink as their indices do. Loops
/// that share no extent with a wanted one get that of `others`. Ids, names and structure stay.
/// Whether the result is defined for all inputs is the verifier's to say. Errors: Unsupported, if
/// extents contradict each other.
Result<ir::Program> shrink(const ir::Program& base, const LoopExtents& wanted,
                           const LoopExtents& others);

/// What evaluating a program of constant extents costs, in block instances, guarded or not; those
/// that hash, compare or divide floats count several times. Saturates.
int64_t cost_of(const ir::Program& program);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_TWIN_SHRINK_H_
