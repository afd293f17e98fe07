// Decisions: the nearest that fits, a random one, a neighbour.
#include "schedule/primitive.h"
#include "schedule/schedule.h"
#include "schedule/trace/factor.h"

#include <algorithm>
#include <iterator>

namespace prunerc::schedule {
namespace {

// The largest code that is not above the wish; where the block is if there is none.
int64_t nearest_location(const std::vector<int64_t>& codes, int64_t wanted) {
  int64_t best = codes[0];
  for (const int64_t code : codes) {
    if (code <= wanted && (best > wanted || code > best)) best = code;
  }
  return best;
}

// Sizes that cover too much give way from the outermost inwards; single elements always fit.
Decision nearest_covering(const DecisionSpace& space, const Decision& wanted) {
  Decision out = wanted;
  out.resize(static_cast<std::size_t>(space.num_tiles - 1), 1);
  for (int64_t& tile : out) tile = std::clamp<int64_t>(tile, 1, space.extent);
  if (space.max_innermost > 0 && !out.empty()) {
    out.back() = std::min(out.back(), space.max_innermost);
  }
  for (std::size_t i = 0; i < out.size() && !space.contains(out); ++i) out[i] = 1;
  return out;
}

std::shared_ptr<const ir::TileSpace> covering_space(const DecisionSpace& space) {
  return covering_tiles(space.extent, space.num_tiles, space.max_innermost);
}

// A covering decision and the same with its outermost tile.
Decision without_outermost(const std::vector<int64_t>& tiles) {
  return {tiles.begin() + 1, tiles.end()};
}
std::vector<int64_t> with_outermost(const DecisionSpace& space, const Decision& decision) {
  int64_t product = 1;
  for (const int64_t tile : decision) product *= tile;
  std::vector<int64_t> tiles = {(space.extent + product - 1) / product};
  tiles.insert(tiles.end(), decision.begin(), decision.end());
  return tiles;
}

}  // namespace

Decision repair_decision(const DecisionSpace& space, const Decision& decision) {
  if (space.contains(decision)) return decision;
  if (space.primitive == PrimitiveKind::kSampleCategorical) {
    const int64_t last = static_cast<int64_t>(space.values.size()) - 1;
    return {decision.empty() ? 0 : std::clamp<int64_t>(decision[0], 0, last)};
  }
  if (space.primitive == PrimitiveKind::kSampleComputeLocation) {
    return {nearest_location(space.values, decision.empty() ? -1 : decision[0])};
  }
  if (space.primitive == PrimitiveKind::kSampleCoveringTile) {
    return nearest_covering(space, decision);
  }
  Decision out = decision;
  out.resize(static_cast<std::size_t>(space.num_tiles), 1);
  int64_t rest = space.extent;
  for (std::size_t i = out.size(); i-- > 1;) {
    int64_t wanted = std::max<int64_t>(out[i], 1);
    if (i + 1 == out.size() && space.max_innermost > 0) {
      wanted = std::min(wanted, space.max_innermost);
    }
    // The largest divisor of what is left that is not above the wish.
    const std::vector<int64_t> options = divisors(rest);
    out[i] = *(std::upper_bound(options.begin(), options.end(), wanted) - 1);
    rest /= out[i];
  }
  out[0] = rest;
  if (space.contains(out)) return out;
  // The simplest tiling that keeps the partition.
  out.assign(out.size(), 1);
  out[static_cast<std::size_t>(space.partition)] = space.inner_factor;
  out[0] *= space.extent / space.inner_factor;
  return out;
}

Decision random_decision(const DecisionSpace& space, Rng& rng) {
  if (space.primitive == PrimitiveKind::kSamplePerfectTile) {
    return random_perfect_tile(space.extent, space.num_tiles, space.max_innermost, rng);
  }
  if (space.primitive == PrimitiveKind::kSamplePartitionedTile) {
    return random_partitioned_tile(space.extent, space.num_tiles, space.partition,
                                   space.inner_factor, rng);
  }
  if (space.primitive == PrimitiveKind::kSampleComputeLocation) {
    return {space.values[rng.below(space.values.size())]};
  }
  if (space.primitive == PrimitiveKind::kSampleCoveringTile) {
    return without_outermost(covering_space(space)->sample(rng));
  }
  int64_t total = 0;
  for (const int64_t weight : space.weights) total += weight;
  int64_t pick = static_cast<int64_t>(rng.below(static_cast<uint64_t>(total)));
  std::size_t index = 0;
  while (pick >= space.weights[index]) pick -= space.weights[index++];
  return {static_cast<int64_t>(index)};
}

Decision mutate_decision(const DecisionSpace& space, const Decision& decision, Rng& rng) {
  if (space.primitive == PrimitiveKind::kSampleCategorical) {
    // Another index of positive weight, if there is one.
    std::vector<int64_t> others;
    for (std::size_t i = 0; i < space.values.size(); ++i) {
      const int64_t index = static_cast<int64_t>(i);
      if (space.weights[i] > 0 && index != decision[0]) others.push_back(index);
    }
    return others.empty() ? decision : Decision{others[rng.below(others.size())]};
  }
  if (space.primitive == PrimitiveKind::kSampleComputeLocation) {
    std::vector<int64_t> others;
    std::copy_if(space.values.begin(), space.values.end(), std::back_inserter(others),
                 [&](int64_t code) { return code != decision[0]; });
    return others.empty() ? decision : Decision{others[rng.below(others.size())]};
  }
  if (space.primitive == PrimitiveKind::kSampleCoveringTile) {
    const std::vector<std::vector<int64_t>> neighbours =
        covering_space(space)->neighbours(with_outermost(space, decision));
    return neighbours.empty() ? decision
                              : without_outermost(neighbours[rng.below(neighbours.size())]);
  }
  // All single moves of one prime from one tile to another that respect the cap.
  std::vector<Decision> neighbours;
  for (std::size_t from = 0; from < decision.size(); ++from) {
    for (const auto& [prime, power] : prime_factors(decision[from])) {
      static_cast<void>(power);
      for (std::size_t to = 0; to < decision.size(); ++to) {
        Decision moved = decision;
        moved[from] /= prime;
        moved[to] *= prime;
        if (to != from && space.contains(moved)) neighbours.push_back(std::move(moved));
      }
    }
  }
  return neighbours.empty() ? decision : neighbours[rng.below(neighbours.size())];
}

}  // namespace prunerc::schedule
