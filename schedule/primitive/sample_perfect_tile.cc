// sample_perfect_tile(@L, 2, 16): tile sizes whose product is the loop's extent, outermost first.
// Needs: a constant extent; a cap of the innermost tile (0: none) that leaves some factorisation.
// After: the program as it is; the trace has the decision, uniform over all ordered factorisations.
//   sample_perfect_tile(@L0, 2, 16)
// ~>
//   sample_perfect_tile(@L0, 2, 16) -> v0, v1 = [32, 16]
#include "schedule/rewrite/sample.h"
#include "schedule/rewrite/site.h"

namespace prunerc::schedule {

using ir::Program;

template <>
Result<DecisionSpace> space_of<PrimitiveKind::kSamplePerfectTile>(const Program& program,
                                                                  const Call& call) {
  PRUNERC_TRY(const Site site, find_loop(program, call.loop(0)));
  DecisionSpace space;
  space.primitive = PrimitiveKind::kSamplePerfectTile;
  PRUNERC_TRY(space.extent, constant_extent(*site.loop()));
  PRUNERC_TRY_VOID(read_tiling(call.integer(1), call.integer(2), &space));
  // A single tile has no freedom, so a cap below the extent leaves nothing.
  if (space.count() == 0) return error(Diag::kTileCap, call.integer(2));
  return space;
}

template <>
Result<Applied> run<PrimitiveKind::kSamplePerfectTile>(const Program& program, const Call& call) {
  return run_sample(program, PrimitiveKind::kSamplePerfectTile, call);
}

}  // namespace prunerc::schedule
