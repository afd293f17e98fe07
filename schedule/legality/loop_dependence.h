// Do different iterations of loops touch different elements? An exact question of index arithmetic:
// declared iteration kinds are not trusted.
#ifndef PRUNERC_SCHEDULE_LEGALITY_LOOP_DEPENDENCE_H_
#define PRUNERC_SCHEDULE_LEGALITY_LOOP_DEPENDENCE_H_

#include "ir/builder.h"
#include "ir/program.h"
#include "schedule/rewrite/site.h"

#include <span>

namespace prunerc::schedule {

/// Whether an intermediate that is accessed only inside the loops, and whose reads are covered by
/// writes before them in the same iteration, none of a reduction over these loops, counts as
/// private: each iteration then has a copy of its own. Never: it is like any other buffer.
/// UnlessShared: not in scope shared.
enum class Privatization : uint8_t { kNever, kAlways, kUnlessShared };

/// Quick: by slabs (below). Exact: also by elimination over the integers (ir/analysis/carried.h),
/// which costs about a hundred times as much where slabs do not suffice.
enum class Effort : uint8_t { kQuick, kExact };

/// A buffer through which two iterations of the nest `chain` (directly nested, outermost first;
/// `top` is the site of its first loop) may depend on each other; an invalid id if there is none.
/// Sound, not complete: an access that is no sum of loop variables, quotients and remainders counts
/// as dependent, and without effort also accesses of different forms.
/// Buffers among `except` do not count.
///
/// Method: all accesses of a written buffer, as a function of the chain's variables, must lie in
/// slabs c1*a1 + c2*a2 + ... + [lo, hi) that are pairwise disjoint for different values of the
/// atoms a1, a2, ..., and the atoms together must determine the iteration.
ir::BufferId dependent_buffer(ir::IrBuilder& b, const ir::Program& program, const Site& top,
                              std::span<const ir::Loop* const> chain, Privatization privatization,
                              Effort effort, std::span<const ir::BufferId> except = {});

/// Does the buffer live within one iteration of the loop at `site`: an intermediate, accessed only
/// there, each read covered by a write before it in the same iteration? No if it is not proved.
bool lives_in_iteration(ir::IrBuilder& b, const ir::Program& program, const Site& site,
                        ir::BufferId buffer);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_LOOP_DEPENDENCE_H_
