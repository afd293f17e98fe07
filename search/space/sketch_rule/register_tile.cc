#include "search/space/sketch_rule/register_tile.h"

#include "search/space/sketch_rule/tile_axes.h"

#include <algorithm>

namespace prunerc::search {
namespace {

using ir::LoopId;
using schedule::Int;

/// Vectors per row of the register tile at most.
constexpr int64_t kMaxVectors = 6;
/// Accumulators that hide the latency of a multiply-add on two ports and leave registers for
/// operands.
constexpr int64_t kPreferredAccumulators = 24;
constexpr int64_t kPreferredVectors = 4;
/// The same where 16 registers hold narrow operands that are widened first.
constexpr int64_t kFewAccumulators = 12;
constexpr int64_t kFewVectors = 2;
/// Transposed, the scalars of a row go through registers as well, and rows are what reuses the vectors,
/// which come from L2.
constexpr int64_t kPreferredTransposedVectors = 2;
/// Of eight tile registers two are for operands: more accumulators than six would be loaded and
/// stored by every instruction. Two by two load a tile for each multiplication.
constexpr int64_t kMaxAccumulatorTiles = 6, kPreferredAccumulatorTiles = 4;
constexpr int64_t kMaxTilesOfAxis = 4, kMaxTilesOfRows = 3, kPreferredTilesOfColumns = 2;

/// Iterations of a part of a reduction: enough to pay for reading the accumulators again. Of an
/// instruction on matrix tiles each has as many products as sixteen others.
constexpr ReductionPart kPart = {.preferred = 256, .least = 16};
constexpr ReductionPart kPartOfTiles = {.preferred = 16, .least = 8};

RegisterTile matrix_tiles(int64_t num_columns, int64_t num_rows) {
  RegisterTile out;
  out.accumulators = kPreferredAccumulatorTiles;
  const bool is_wide = num_columns > 1;
  out.most_rows = std::min(num_rows, is_wide ? kMaxTilesOfRows : kMaxTilesOfAxis);
  out.most_vectors = std::min({num_columns, kMaxTilesOfAxis, kMaxAccumulatorTiles / out.most_rows});
  out.vectors = num_rows > 1 ? kPreferredTilesOfColumns : kPreferredAccumulatorTiles;
  return out;
}

}  // namespace

RegisterTile register_tile(const ir::Target& target, const std::optional<NarrowProduct>& narrow,
                           bool transposes, int64_t num_vectors, int64_t num_rows) {
  if (narrow && narrow->is_tile()) return matrix_tiles(num_vectors, std::max<int64_t>(1, num_rows));
  const bool is_small = narrow && target.num_vector_registers < 32;
  RegisterTile out;
  out.accumulators = is_small ? kFewAccumulators : kPreferredAccumulators;
  out.vectors = transposes ? kPreferredTransposedVectors
                : is_small ? kFewVectors
                           : kPreferredVectors;
  if (num_rows == 0) out.vectors = kMaxVectors;
  out.most_vectors = kMaxVectors;
  out.most_rows = kMaxRows;
  return out;
}

Result<TiledAxis> tile_axis(SketchContext& context, const Axis& axis, int64_t units,
                            int64_t preferred_tile, int64_t preferred_tasks, int64_t max_tile,
                            int64_t width) {
  const int64_t tiles = ceil_div(units, std::min(units, preferred_tile));
  std::vector<Int> factors =
      context.cover(units, {ceil_div(tiles, preferred_tasks), preferred_tile}, max_tile);
  const int64_t tile = factors.back().value;
  if (width > 0) factors.push_back(Int(width));
  PRUNERC_TRY(const std::vector<LoopId> parts, context.schedule.split(axis.loop, factors));
  return TiledAxis{parts[0], parts[1], {parts.begin() + 2, parts.end()}, tile};
}

ReductionPart reduction_part(const std::optional<NarrowProduct>& narrow) {
  return narrow && narrow->is_tile() ? kPartOfTiles : kPart;
}

}  // namespace prunerc::search
