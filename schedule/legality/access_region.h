// Boxes that block accesses cover when the loops around the block run.
#ifndef PRUNERC_SCHEDULE_LEGALITY_ACCESS_REGION_H_
#define PRUNERC_SCHEDULE_LEGALITY_ACCESS_REGION_H_

#include "ir/analysis/region.h"
#include "ir/builder.h"
#include "schedule/rewrite/site.h"

#include <optional>
#include <span>

namespace prunerc::schedule {

/// Region of a leaf block's access over all iterations of `leaf.loops`; what is outside stays
/// symbolic. `ranges` describes the variables outside.
ir::BufferRegion access_box(ir::IrBuilder& b, const LeafBlock& leaf, const ir::Access& access,
                            ir::VarRanges& ranges);

/// Is every element of that box (within the buffer) written when `leaf.loops` run? No if it is not
/// proved.
bool writes_whole_box(ir::IrBuilder& b, const LeafBlock& leaf, const ir::Access& access,
                      ir::VarRanges& ranges);

/// The box that is written when `leaf.loops` run, where the block's guard cuts it out of more: the
/// tail of a fused loop, say. Nullopt without a guard, or if nothing is proved.
std::optional<ir::BufferRegion> guarded_box(ir::IrBuilder& b, const LeafBlock& leaf,
                                            const ir::Access& access, ir::VarRanges& ranges);

/// Region of a block's access over its whole iteration domain.
ir::BufferRegion domain_box(ir::IrBuilder& b, const ir::Block& block, const ir::Access& access);
/// Is every element of that box written by the instances of the domain?
bool writes_whole_domain_box(ir::IrBuilder& b, const ir::Block& block, const ir::Access& access);

/// The same region in the same terms?
bool same_region(const ir::Access& x, const ir::Access& y);
/// The access if every range is a single element.
bool is_point(const ir::Access& access);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_ACCESS_REGION_H_
