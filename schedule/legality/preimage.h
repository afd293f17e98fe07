// Which instances of a block touch a box, where subscripts are more than single variables.
#ifndef PRUNERC_SCHEDULE_LEGALITY_PREIMAGE_H_
#define PRUNERC_SCHEDULE_LEGALITY_PREIMAGE_H_

#include "ir/analysis/region.h"
#include "ir/builder.h"

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::schedule {

/// First value and number of values, which is a constant, of an iteration variable.
struct VarRun {
  ir::Expr first;
  ir::Expr count;
};

/// All values of the variable for which the dimension of the access, an interval that begins at a
/// multiple of the variable plus a constant, meets that dimension of the box. A superset where the
/// number depends on where the box stands. Nullopt for other subscripts, `var + constant` too.
std::optional<VarRun> tiles_that_meet(ir::IrBuilder& b, const ir::IterVar& iter,
                                      const ir::Range& access, const ir::Range& box,
                                      const ir::VarRanges& ranges);

/// The same for subscripts of several variables, or with quotients and remainders, that tell the
/// instances apart (bijection.h): by variable, over all elements of the box. Null `first`: unknown.
/// Empty if the access is not of that form.
std::vector<VarRun> instances_that_meet(ir::IrBuilder& b, const ir::Block& block,
                                        const ir::Access& access, const ir::BufferRegion& box,
                                        const ir::VarRanges& ranges);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_PREIMAGE_H_
