// Intervals of iteration variables that an access box asks for.
#ifndef PRUNERC_SCHEDULE_LEGALITY_ITER_DOMAIN_H_
#define PRUNERC_SCHEDULE_LEGALITY_ITER_DOMAIN_H_

#include "ir/analysis/region.h"
#include "ir/builder.h"
#include "schedule/rewrite/site.h"

#include <vector>

namespace prunerc::schedule {

/// [min, min + extent) of one iteration variable; null min: the whole domain. The extent is a
/// constant, or an expression over tile parameters.
struct IterRange {
  ir::Expr min;
  ir::Expr extent;
  /// Found through a subscript that is more than `var + constant` (preimage.h); the whole domain
  /// if a tile may need all of it.
  bool by_map = false;
};

/// One range per iteration variable of the block: a spatial variable that a subscript `var +
/// constant` of `access` ties to a dimension of `box` runs over that interval, or over what
/// preimage.h finds for other subscripts of a program without tile parameters; all others over
/// their domain. Extents of the variables are constant. With tile parameters a box may reach over
/// the domain for some values: then min and extent say by these which of both it is.
std::vector<IterRange> solve_iters(ir::IrBuilder& b, const ir::Block& block,
                                   const ir::Access& access, const ir::BufferRegion& box,
                                   const ir::VarRanges& ranges);

/// Conditions that keep iter.binding, which runs over `range`, inside the domain; null if it cannot
/// leave it.
ir::Expr bounds_guard(ir::IrBuilder& b, const ir::IterVar& iter, const IterRange& range,
                      const ir::VarRanges& ranges);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_ITER_DOMAIN_H_
