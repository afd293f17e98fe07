// How long an intermediate lives: lowering gives each iteration of the loops around all accesses
// storage of its own.
#ifndef PRUNERC_SCHEDULE_LEGALITY_LIFETIME_H_
#define PRUNERC_SCHEDULE_LEGALITY_LIFETIME_H_

#include "schedule/legality/dataflow.h"

#include <optional>
#include <vector>

namespace prunerc::schedule {

/// The loops of which one iteration holds all accesses of the buffer: those around all of them, up
/// to the first one that carries a reduction into it or is vectorized.
std::vector<const ir::Loop*> life_of(const Dataflow& flow, ir::BufferId buffer);

/// What a block reads although an earlier iteration of the loop has written it.
struct LostValue {
  ir::BlockId reader, writer;
  ir::BufferId buffer;
  ir::LoopId loop;
};

/// What may be such a read, not of block `but`, of a buffer whose life a rewrite has made shorter;
/// nothing if there is certainly none.
std::optional<LostValue> lost_value(const ir::Program& before, const ir::Program& after,
                                    ir::BlockId but = {});

/// The same as a diagnostic. Errors: RegionNotCovered.
Result<void> check_nothing_lost(const ir::Program& before, const ir::Program& after,
                                ir::BlockId but = {});

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_LIFETIME_H_
