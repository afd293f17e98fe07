// sample_perfect_tile(loop, n, cap) -> n tiles whose product is the loop's extent, the last at most
// cap (0: no cap). sample_partitioned_tile(loop, n, p, f) -> n tiles, f divides the product of
// those from p on. sample_categorical(values, weights) -> one of the values.
// sample_covering_tile(extent, n, cap) -> the n - 1 inner tiles of a tiling that covers the extent
// with at most a quarter of waste; split infers the outermost (-1), so that any extent can be cut.
// sample_compute_location(block, codes) -> one of the codes that stand for a legal place now.
// product(factors) -> the value that several decisions have together; decides nothing itself.
//
// The program stays as it is; the decision is recorded in the trace. Drawing is uniform over all
// ordered factorisations (counted exactly, no rejection), or by the given relative weights.
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"
#include "schedule/schedule.h"
#include "schedule/trace/factor.h"

#include <algorithm>
#include <string>

namespace prunerc::schedule {
namespace {

using ir::Program;

/// Deeper tilings have no use; bounds the work that a hostile trace can ask for.
constexpr int64_t kMaxTiles = 16;
/// Keeps every index far from overflow.
constexpr int64_t kMaxProduct = int64_t{1} << 40;

Result<DecisionSpace> tile_space(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_loop(program, call.loop(0)));
  DecisionSpace space;
  space.primitive = PrimitiveKind::kSamplePerfectTile;
  PRUNERC_TRY(space.extent, constant_extent(*site.loop()));
  if (call.integer(1) < 1 || call.integer(1) > kMaxTiles) {
    return error(Diag::kTileCount, kMaxTiles, call.integer(1));
  }
  if (call.integer(2) < 0) return error(Diag::kTileCap, call.integer(2));
  space.num_tiles = static_cast<int>(call.integer(1));
  space.max_innermost = call.integer(2);
  // A single tile has no freedom, so a cap below the extent leaves nothing.
  if (space.count() == 0) return error(Diag::kTileCap, call.integer(2));
  return space;
}

Result<DecisionSpace> covering_space(const Call& call) {
  DecisionSpace space;
  space.primitive = PrimitiveKind::kSampleCoveringTile;
  space.extent = call.integer(0);
  if (space.extent < 1 || space.extent > ir::TileSpace::kMaxCoveringExtent) {
    return error(Diag::kTileExtent, ir::TileSpace::kMaxCoveringExtent, space.extent);
  }
  if (call.integer(1) < 1 || call.integer(1) > kMaxTiles) {
    return error(Diag::kTileCount, kMaxTiles, call.integer(1));
  }
  if (call.integer(2) < 0) return error(Diag::kTileCap, call.integer(2));
  space.num_tiles = static_cast<int>(call.integer(1));
  space.max_innermost = call.integer(2);
  return space;
}

Result<DecisionSpace> partition_space(const Program& program, const Call& call) {
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

Result<DecisionSpace> location_space(const Program& program, const Call& call) {
  PRUNERC_TRY_VOID(find_block(program, call.block(0)));
  DecisionSpace space;
  space.primitive = PrimitiveKind::kSampleComputeLocation;
  const std::vector<int64_t> listed = call.integers(1);
  for (const int64_t code : compute_locations(program, call.block(0))) {
    if (std::find(listed.begin(), listed.end(), code) != listed.end()) {
      space.values.push_back(code);
    }
  }
  if (space.values.empty()) return error(Diag::kLocationStale, call.block(0));
  space.weights.assign(space.values.size(), 1);
  return space;
}

Result<DecisionSpace> categorical_space(const Call& call) {
  DecisionSpace space;
  space.values = call.integers(0);
  space.weights = call.integers(1);
  int64_t total = 0;
  bool fits = space.values.size() == space.weights.size();
  for (const int64_t weight : space.weights) {
    fits = fits && weight >= 0 && !__builtin_add_overflow(total, weight, &total);
  }
  if (!fits || total == 0) {
    return error(Diag::kCategoricalWeights, static_cast<int64_t>(space.values.size()));
  }
  return space;
}

std::string text(const Decision& decision) {
  std::string out = "[";
  for (std::size_t i = 0; i < decision.size(); ++i) {
    out += (i > 0 ? ", " : "") + std::to_string(decision[i]);
  }
  return out + "]";
}

Result<DecisionSpace> decided_space(const Program& program, PrimitiveKind kind, const Call& call) {
  PRUNERC_TRY(DecisionSpace space, sample_space(program, kind, call));
  if (call.decision == nullptr || !space.contains(*call.decision)) {
    return error(Diag::kDecisionMismatch, call.decision ? text(*call.decision) : "[]",
                 std::string(to_string(kind)));
  }
  return space;
}

}  // namespace

Result<DecisionSpace> sample_space(const Program& program, PrimitiveKind kind, const Call& call) {
  if (kind == PrimitiveKind::kSamplePerfectTile) return tile_space(program, call);
  if (kind == PrimitiveKind::kSamplePartitionedTile) return partition_space(program, call);
  if (kind == PrimitiveKind::kSampleComputeLocation) return location_space(program, call);
  if (kind == PrimitiveKind::kSampleCoveringTile) return covering_space(call);
  return categorical_space(call);
}

template <>
Result<Applied> run<PrimitiveKind::kSamplePerfectTile>(const Program& program, const Call& call) {
  PRUNERC_TRY_VOID(decided_space(program, PrimitiveKind::kSamplePerfectTile, call));
  return Applied{program, {}, *call.decision};
}

template <>
Result<Applied> run<PrimitiveKind::kSamplePartitionedTile>(const Program& program,
                                                           const Call& call) {
  PRUNERC_TRY_VOID(decided_space(program, PrimitiveKind::kSamplePartitionedTile, call));
  return Applied{program, {}, *call.decision};
}

template <>
Result<Applied> run<PrimitiveKind::kSampleCoveringTile>(const Program& program, const Call& call) {
  PRUNERC_TRY_VOID(decided_space(program, PrimitiveKind::kSampleCoveringTile, call));
  return Applied{program, {}, *call.decision};
}

template <>
Result<Applied> run<PrimitiveKind::kSampleComputeLocation>(const Program& program,
                                                           const Call& call) {
  PRUNERC_TRY_VOID(decided_space(program, PrimitiveKind::kSampleComputeLocation, call));
  return Applied{program, {}, *call.decision};
}

template <>
Result<Applied> run<PrimitiveKind::kEnterPostproc>(const Program& program, const Call&) {
  return Applied{program, {}, {}};
}

template <>
Result<Applied> run<PrimitiveKind::kProduct>(const Program& program, const Call& call) {
  int64_t product = 1;
  for (const int64_t factor : call.integers(0)) {
    if (factor < 1 || factor > kMaxProduct / product) {
      return error(Diag::kProductRange, kMaxProduct);
    }
    product *= factor;
  }
  return Applied{program, {}, {product}};
}

template <>
Result<Applied> run<PrimitiveKind::kSampleCategorical>(const Program& program, const Call& call) {
  PRUNERC_TRY(const DecisionSpace space,
              decided_space(program, PrimitiveKind::kSampleCategorical, call));
  return Applied{program, {}, {space.values[static_cast<std::size_t>((*call.decision)[0])]}};
}

}  // namespace prunerc::schedule
