// How large a register tile is, and how its axes are cut; private to rule "tile".
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_REGISTER_TILE_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_REGISTER_TILE_H_

#include "search/space/sketch_rule/narrow.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace prunerc::search {

/// Of vectors and rows; of an instruction on matrix tiles, of its columns and rows of tiles.
struct RegisterTile {
  int64_t accumulators = 1, vectors = 1;  // by default
  int64_t most_vectors = 1, most_rows = 1;
};

/// For so many vectors and rows in all; `num_rows` is 0 where operands share no axis. `transposes`: its rows are
/// where the vectors come from.
RegisterTile register_tile(const ir::Target& target, const std::optional<NarrowProduct>& narrow,
                           bool transposes, int64_t num_vectors, int64_t num_rows);

/// The loops of one tiled axis: tasks, tiles of a task, then the tile itself.
struct TiledAxis {
  ir::LoopId task, tile;
  std::vector<ir::LoopId> inner;
  int64_t size = 1;  // of a tile, in units, by default
};

/// Cuts an axis of `units` (vectors, or single rows) into tasks, tiles of a task, and units of a tile.
Result<TiledAxis> tile_axis(SketchContext& context, const Axis& axis, int64_t units,
                            int64_t preferred_tile, int64_t preferred_tasks, int64_t max_tile,
                            int64_t width);

/// Iterations of a part of a reduction, by default and at least.
struct ReductionPart {
  int64_t preferred, least;
};
ReductionPart reduction_part(const std::optional<NarrowProduct>& narrow);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_REGISTER_TILE_H_
