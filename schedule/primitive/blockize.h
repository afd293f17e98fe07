// A loop nest as one block: shared by blockize and tensorize.
#ifndef PRUNERC_SCHEDULE_PRIMITIVE_BLOCKIZE_H_
#define PRUNERC_SCHEDULE_PRIMITIVE_BLOCKIZE_H_

#include "ir/builder.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <cstdint>
#include <memory>
#include <vector>

namespace prunerc::schedule {

/// An iteration variable as tile * tile_extent + inner.
struct TiledIter {
  ir::Expr tile;   // over the loops outside
  ir::Expr inner;  // over the loops that go inside, in [0, tile_extent)
  int64_t tile_extent = 1;
};

class BlockizePlan {
 public:
  ir::IrBuilder& builder() const { return *builder_; }
  const Site& site() const { return site_; }
  const ir::Block& block() const { return *block_; }
  /// The loops that go inside the block, outermost first.
  const std::vector<const ir::Loop*>& loops() const { return loops_; }
  /// By the block's iteration variables.
  const std::vector<TiledIter>& iters() const { return iters_; }

 private:
  friend Result<BlockizePlan> plan_blockize(const ir::Program&, ir::LoopId);
  std::unique_ptr<ir::IrBuilder> builder_;  // owns the expressions
  Site site_;
  const ir::Block* block_ = nullptr;
  std::vector<const ir::Loop*> loops_;
  std::vector<TiledIter> iters_;
};

/// Errors: LoopNotFound, LoopNotSerial, LoopHasAttr, LoopExtentNotConstant, BlockNested,
/// BlockUnderIf, BlockOrderFixed, BlockizeForm.
Result<BlockizePlan> plan_blockize(const ir::Program& program, ir::LoopId loop);
/// Outputs: the block, then the loops of its init.
Applied apply_blockize(const ir::Program& program, const BlockizePlan& plan);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_PRIMITIVE_BLOCKIZE_H_
