// sample_covering_tile(500, 3, 16): the inner tile sizes of a tiling that covers the extent. Needs:
// an extent up to TileSpace::kMaxCoveringExtent. After: the program as it is; at most a quarter of
// what the tiles cover lies beyond the extent; split infers the outermost size (-1).
//   sample_covering_tile(500, 3, 16)
// ~>
//   sample_covering_tile(500, 3, 16) -> v0, v1 = [8, 16]
#include "ir/tile_space.h"
#include "schedule/rewrite/sample.h"

namespace prunerc::schedule {

using ir::Program;

template <>
Result<DecisionSpace> space_of<PrimitiveKind::kSampleCoveringTile>(const Program&,
                                                                   const Call& call) {
  DecisionSpace space;
  space.primitive = PrimitiveKind::kSampleCoveringTile;
  space.extent = call.integer(0);
  if (space.extent < 1 || space.extent > ir::TileSpace::kMaxCoveringExtent) {
    return error(Diag::kTileExtent, ir::TileSpace::kMaxCoveringExtent, space.extent);
  }
  PRUNERC_TRY_VOID(read_tiling(call.integer(1), call.integer(2), &space));
  return space;
}

template <>
Result<Applied> run<PrimitiveKind::kSampleCoveringTile>(const Program& program, const Call& call) {
  return run_sample(program, PrimitiveKind::kSampleCoveringTile, call);
}

}  // namespace prunerc::schedule
