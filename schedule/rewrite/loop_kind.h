// A serial loop takes another kind: what parallel, vectorize, unroll and bind share.
#ifndef PRUNERC_SCHEDULE_REWRITE_LOOP_KIND_H_
#define PRUNERC_SCHEDULE_REWRITE_LOOP_KIND_H_

#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

namespace prunerc::schedule {

/// The place of a serial loop. Errors: LoopNotFound, LoopNotSerial, LoopExtentNotConstant.
Result<Site> find_serial_loop(const ir::Program& program, ir::LoopId id);
/// The same, or of a loop that is a thread axis: in the order of its iterations it computes the same,
/// so that it may become what a serial loop may. Errors: as find_serial_loop.
Result<Site> find_serial_or_bound_loop(const ir::Program& program, ir::LoopId id);

/// A parallel loop stands neither inside nor around another parallel or vectorized loop, except
/// that it may hold vectorized ones; a vectorized loop holds none of both. Kernels hold no parallel
/// loop, and no loop of these kinds holds a kernel. Errors: LoopNestedParallel.
Result<void> check_loop_nesting(const Site& site, ir::LoopKind wanted);

Applied with_loop_kind(const ir::Program& program, const Site& site, ir::LoopKind kind);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_LOOP_KIND_H_
