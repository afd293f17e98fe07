// Decisions at sampling primitives: each says what may be decided, and takes what was.
#ifndef PRUNERC_SCHEDULE_REWRITE_SAMPLE_H_
#define PRUNERC_SCHEDULE_REWRITE_SAMPLE_H_

#include "schedule/primitive.h"

#include <cstdint>

namespace prunerc::schedule {

/// Deeper tilings have no use; bounds the work that a hostile trace can ask for.
inline constexpr int64_t kMaxTiles = 16;

/// What a call may decide; each sampling primitive defines its own.
template <PrimitiveKind kKind>
Result<DecisionSpace> space_of(const ir::Program& program, const Call& call);
template <>
Result<DecisionSpace> space_of<PrimitiveKind::kSamplePerfectTile>(const ir::Program&, const Call&);
template <>
Result<DecisionSpace> space_of<PrimitiveKind::kSampleCategorical>(const ir::Program&, const Call&);
template <>
Result<DecisionSpace> space_of<PrimitiveKind::kSamplePartitionedTile>(const ir::Program&,
                                                                      const Call&);
template <>
Result<DecisionSpace> space_of<PrimitiveKind::kSampleCoveringTile>(const ir::Program&, const Call&);
template <>
Result<DecisionSpace> space_of<PrimitiveKind::kSampleComputeLocation>(const ir::Program&,
                                                                      const Call&);

/// Reads the number of tiles and the cap of the innermost one. Errors: TileCount, TileCap.
Result<void> read_tiling(int64_t num_tiles, int64_t max_innermost, DecisionSpace* space);
/// The space, if the call's decision is in it. Errors: DecisionMismatch; those of the space.
Result<DecisionSpace> decided_space(const ir::Program& program, PrimitiveKind kind,
                                    const Call& call);
/// The program as it is, and the decision as the values of a tiling or place.
Result<Applied> run_sample(const ir::Program& program, PrimitiveKind kind, const Call& call);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_SAMPLE_H_
