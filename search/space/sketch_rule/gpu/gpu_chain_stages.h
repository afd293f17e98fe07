// What stands between two products of one kernel: stages whose rows belong to warps, their elements to lanes.
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_CHAIN_STAGES_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_CHAIN_STAGES_H_

#include "search/space/sketch_rule/gpu/gpu_warp.h"

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

namespace prunerc::search {

/// Along rows and along their elements: a block's variables, or a buffer's dimensions. None: there is no such one.
using Places = std::array<std::optional<std::size_t>, 2>;

/// A block of the kernel that is no product.
struct ChainStage {
  ir::BlockId block;
  Places places;             // variables
  bool read_behind = false;  // by a later kernel, or it is a result
};

/// What leads from one padded product to the other, and what else reads whole rows: nobody behind the kernel has them.
/// In execution order.
std::vector<ChainStage> find_stages(const schedule::Schedule& schedule, const MatrixProduct& first,
                                    const MatrixProduct& second);

/// The kernel as its stages see it.
struct ChainRows {
  ir::BlockId second;    // product
  schedule::Int rows;    // of a block
  int64_t elements = 1;  // of a row
  WarpProduct* warps = nullptr;
  int64_t at_once = 1;  // rows that a warp takes at a time
  ir::BlockId kept;     // the stage whose rows stay in registers; may be invalid
};

/// Each stage stands under the last loop of `grid`, that over blocks of rows, its rows in shared memory; what is read
/// behind the kernel stays where it is. If one of them is kept in registers all of them run before the next rows do.
/// Errors: Unsupported for stages of another shape; those of the primitives.
Result<void> share_stages(SketchContext& context, const std::vector<ChainStage>& stages,
                          const ChainRows& rows, std::vector<ir::LoopId>* grid);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_CHAIN_STAGES_H_
