#include "schedule/rewrite/sample.h"

#include <string>

namespace prunerc::schedule {

using ir::Program;

namespace {

std::string text(const Decision& decision) {
  std::string out = "[";
  for (std::size_t i = 0; i < decision.size(); ++i) {
    out += (i > 0 ? ", " : "") + std::to_string(decision[i]);
  }
  return out + "]";
}

}  // namespace

Result<DecisionSpace> sample_space(const Program& program, PrimitiveKind kind, const Call& call) {
  switch (kind) {
    case PrimitiveKind::kSamplePerfectTile:
      return space_of<PrimitiveKind::kSamplePerfectTile>(program, call);
    case PrimitiveKind::kSamplePartitionedTile:
      return space_of<PrimitiveKind::kSamplePartitionedTile>(program, call);
    case PrimitiveKind::kSampleComputeLocation:
      return space_of<PrimitiveKind::kSampleComputeLocation>(program, call);
    case PrimitiveKind::kSampleCoveringTile:
      return space_of<PrimitiveKind::kSampleCoveringTile>(program, call);
    default: return space_of<PrimitiveKind::kSampleCategorical>(program, call);
  }
}

Result<void> read_tiling(int64_t num_tiles, int64_t max_innermost, DecisionSpace* space) {
  if (num_tiles < 1 || num_tiles > kMaxTiles) return error(Diag::kTileCount, kMaxTiles, num_tiles);
  if (max_innermost < 0) return error(Diag::kTileCap, max_innermost);
  space->num_tiles = static_cast<int>(num_tiles);
  space->max_innermost = max_innermost;
  return {};
}

Result<DecisionSpace> decided_space(const Program& program, PrimitiveKind kind, const Call& call) {
  PRUNERC_TRY(DecisionSpace space, sample_space(program, kind, call));
  if (call.decision == nullptr || !space.contains(*call.decision)) {
    return error(Diag::kDecisionMismatch, call.decision ? text(*call.decision) : "[]",
                 std::string(to_string(kind)));
  }
  return space;
}

Result<Applied> run_sample(const Program& program, PrimitiveKind kind, const Call& call) {
  PRUNERC_TRY_VOID(decided_space(program, kind, call));
  return Applied{program, {}, *call.decision};
}

}  // namespace prunerc::schedule
