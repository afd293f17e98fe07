// sample_partitioned_tile(@L, 3, 2, 4): tile sizes whose product is the loop's extent, where a
// number divides the product of those from a position on. Needs: the number divides the extent.
// After: the program as it is; the trace has the decision.
//   sample_partitioned_tile(@L0, 3, 2, 4)
// ~>
//   sample_partitioned_tile(@L0, 3, 2, 4) -> v0, v1, v2 = [8, 4, 16]
#include "schedule/rewrite/sample.h"
#include "schedule/rewrite/site.h"

namespace prunerc::schedule {

using ir::Program;

template <>
Result<DecisionSpace> space_of<PrimitiveKind::kSamplePartitionedTile>(const Program& program,
                                                                      const Call& call) {
  PRUNERC_TRY(const Site site, find_loop(program, call.loop(0)));
  DecisionSpace space;
  space.primitive = PrimitiveKind::kSamplePartitionedTile;
  PRUNERC_TRY(space.extent, constant_extent(*site.loop()));
  const int64_t num_tiles = call.integer(1);
  if (num_tiles < 1 || num_tiles > kMaxTiles) return error(Diag::kTileCount, kMaxTiles, num_tiles);
  const int64_t partition = call.integer(2);
  const int64_t factor = call.integer(3);
  const bool inside = partition >= 0 && partition < num_tiles;
  if (!inside || factor < 1 || space.extent % factor != 0) {
    return error(Diag::kTilePartition, num_tiles, space.extent, inside ? factor : partition);
  }
  space.num_tiles = static_cast<int>(num_tiles);
  space.partition = static_cast<int>(partition);
  space.inner_factor = factor;
  return space;
}

template <>
Result<Applied> run<PrimitiveKind::kSamplePartitionedTile>(const Program& program,
                                                           const Call& call) {
  return run_sample(program, PrimitiveKind::kSamplePartitionedTile, call);
}

}  // namespace prunerc::schedule
