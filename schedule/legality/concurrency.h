// May the iterations of a loop run in any order or at once? Asked before a loop becomes parallel,
// vectorized or a thread axis, and after a rewrite below one.
#ifndef PRUNERC_SCHEDULE_LEGALITY_CONCURRENCY_H_
#define PRUNERC_SCHEDULE_LEGALITY_CONCURRENCY_H_

#include "ir/program.h"
#include "schedule/rewrite/site.h"

#include <vector>

namespace prunerc::schedule {

/// Iterations of the loop at `site` touch disjoint elements of all that is written below, for a
/// loop of `kind` (its own kind does not count). A thread.* loop may feed the reduction variables
/// of a block whose reducer is known: then the threads combine what they have.
/// Errors: BlocksDepend, CrossThreadReduction, BlockOrderFixed.
Result<void> check_concurrent(const ir::Program& program, const Site& site, ir::LoopKind kind);

/// The same for loops of a rewritten program that were concurrent before.
Result<void> recheck_concurrent(const ir::Program& program, const std::vector<ir::LoopId>& loops);

/// The same for the concurrent loops around a place that a block was taken away from, as far as
/// they are left: what was private to an iteration may now be read from outside.
Result<void> recheck_concurrent_around(const ir::Program& rewritten, const Site& old_place);

/// Ids of concurrent loops (parallel, thread axes) on the path, the last statement included.
std::vector<ir::LoopId> concurrent_loops(const Site& site);
/// The same anywhere in a statement, vectorized loops included.
std::vector<ir::LoopId> concurrent_loops_in(ir::Stmt s);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_CONCURRENCY_H_
