// A block's new place and the nest that goes there: what compute_at and reverse_compute_at plan.
#ifndef PRUNERC_SCHEDULE_REWRITE_MOVE_H_
#define PRUNERC_SCHEDULE_REWRITE_MOVE_H_

#include "ir/builder.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace prunerc::schedule {

enum class Direction : uint8_t { kProducer, kConsumer };

struct MovePlan {
  std::unique_ptr<ir::IrBuilder> builder;  // owns the nodes of the nest
  Site block_site;
  ir::LoopId loop;
  ir::Stmt nest;
  /// The statement of the loop's body before (producer) or after (consumer) which the nest goes.
  ir::Stmt neighbour;
  std::vector<ir::LoopId> new_loops;
  /// Parallel loops and thread axes around the new place.
  std::vector<ir::LoopId> concurrent;
  Direction direction = Direction::kProducer;
};

/// Takes the block away and puts the nest in its new place.
Applied apply_move(const MovePlan& plan);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_MOVE_H_
