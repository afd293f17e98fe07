// sample_perfect_tile(loop, n, cap) -> n tiles whose product is the loop's extent, the last at most
// cap (0: no cap). sample_categorical(values, weights) -> one of the values.
//
// The program stays as it is; the decision is recorded in the trace. Drawing is uniform over all
// ordered factorisations (counted exactly, no rejection), or by the given relative weights.
#include "schedule/factor.h"
#include "schedule/primitive.h"
#include "schedule/primitive/site.h"
#include "schedule/schedule.h"

#include <algorithm>
#include <string>

namespace prunerc::schedule {
namespace {

using ir::Program;

/// Deeper tilings have no use; bounds the work that a hostile trace can ask for.
constexpr int64_t kMaxTiles = 16;

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
  return kind == PrimitiveKind::kSamplePerfectTile ? tile_space(program, call)
                                                   : categorical_space(call);
}

template <>
Result<Applied> run<PrimitiveKind::kSamplePerfectTile>(const Program& program, const Call& call) {
  PRUNERC_TRY_VOID(decided_space(program, PrimitiveKind::kSamplePerfectTile, call));
  return Applied{program, {}, *call.decision};
}

template <>
Result<Applied> run<PrimitiveKind::kSampleCategorical>(const Program& program, const Call& call) {
  PRUNERC_TRY(const DecisionSpace space,
              decided_space(program, PrimitiveKind::kSampleCategorical, call));
  return Applied{program, {}, {space.values[static_cast<std::size_t>((*call.decision)[0])]}};
}

Decision repair_decision(const DecisionSpace& space, const Decision& decision) {
  if (space.contains(decision)) return decision;
  if (space.primitive == PrimitiveKind::kSampleCategorical) {
    const int64_t last = static_cast<int64_t>(space.values.size()) - 1;
    return {decision.empty() ? 0 : std::clamp<int64_t>(decision[0], 0, last)};
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
  return out;
}

Decision random_decision(const DecisionSpace& space, Rng& rng) {
  if (space.primitive == PrimitiveKind::kSamplePerfectTile) {
    return random_perfect_tile(space.extent, space.num_tiles, space.max_innermost, rng);
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
