// Reductions by their bodies: which operation accumulates, and whether instances of a block may be
// reordered.
#ifndef PRUNERC_SCHEDULE_LEGALITY_INSTANCE_ORDER_H_
#define PRUNERC_SCHEDULE_LEGALITY_INSTANCE_ORDER_H_

#include "ir/analysis/accumulator.h"
#include "ir/arith/prove.h"
#include "ir/builder.h"
#include "schedule/rewrite/site.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::schedule {

/// Is `value` the constant e with (e op x) == x?
bool is_identity(ir::ExprKind op, ir::Expr value);

bool has_reduce_iters(const ir::Block& block);

/// Which pairs of a block's instances a question is about: those that differ, or differ in a
/// spatial variable.
enum class InstancePairs : uint8_t { kAll, kSpatial };
/// Which instances run: those of the whole domain, or those at points of the loops where the
/// conditions (over loops' and iteration variables) hold.
struct InstanceLimits {
  std::vector<const ir::Loop*> loops;
  std::vector<ir::Expr> conditions;
};
/// Does one of two such instances touch by x what the other touches by y?
ir::Proof instances_meet(const ir::Block& block, const ir::Access& x, const ir::Access& y,
                         InstancePairs pairs, const ir::ProveOptions& options,
                         const InstanceLimits& limits = {});
/// Why not every order of the block's instances gives the same: empty if it updates one element, a
/// tuple, or a tile of elements, each by an operation that is known to combine.
std::string accumulation_fault(ir::IrBuilder& b, const ir::Block& block);

/// Why the instances of a block must keep their order; empty if any order gives the same result.
/// Spatial variables must determine the element that is written, reduction variables must
/// accumulate through a known reducer: declared kinds are checked against the body. What a tuple's
/// step stores besides its targets (tuple.h) nobody else may read.
std::string order_fault(ir::IrBuilder& b, const ir::Program& program, const ir::Block& block);

/// Every instance occurs once while `loops` run, and if the reduction variables are all 0 somewhere,
/// then where the loops that feed them are: so the initialising instance comes first in any order of
/// the loops.
/// `ranges` knows all loops around the block. Errors: BlockOrderFixed.
Result<void> check_instances_once(ir::IrBuilder& b, const ir::Block& block,
                                  const std::vector<const ir::Loop*>& loops,
                                  const ir::VarRanges& ranges);

/// The part of the guard that cuts off more than values outside the iteration variables' extents;
/// null if none does. `ranges` knows the loops.
ir::Expr guard_within_domain(ir::IrBuilder& b, const ir::Block& block, const ir::VarRanges& ranges);
/// Does the guard cut off nothing but values outside the iteration variables' extents?
bool guard_cuts_only_domain(ir::IrBuilder& b, const ir::Block& block, const ir::VarRanges& ranges);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_INSTANCE_ORDER_H_
