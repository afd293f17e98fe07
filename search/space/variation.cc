#include "search/space/variation.h"

#include "schedule/schedule.h"
#include "search/space/members.h"
#include "search/space/sampler.h"

namespace prunerc::search {
namespace {

bool is_tile(const schedule::DecisionSpace& space) {
  return space.primitive != schedule::PrimitiveKind::kSampleCategorical &&
         space.primitive != schedule::PrimitiveKind::kSampleComputeLocation;
}

// Decisions that have an alternative and may change now.
std::vector<std::size_t> open_decisions(const std::vector<schedule::DecisionSpace>& spaces,
                                        double tile_share, Rng& rng) {
  std::vector<std::size_t> tiles, others, all;
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    if (spaces[i].count() <= 1) continue;
    (is_tile(spaces[i]) ? tiles : others).push_back(i);
    all.push_back(i);
  }
  if (tile_share < 0) return all;
  if (tiles.empty() || others.empty()) return tiles.empty() ? others : tiles;
  return rng.chance(tile_share) ? tiles : others;
}

void change_one(const std::vector<schedule::DecisionSpace>& spaces, const MutationOptions& options,
                Genome& genome, Rng& rng) {
  const std::vector<std::size_t> open = open_decisions(spaces, options.tile_share, rng);
  if (open.empty()) return;
  const std::size_t at = open[static_cast<std::size_t>(rng.below(open.size()))];
  const schedule::DecisionSpace& space = spaces[at];
  schedule::Decision& decision = genome.decisions[at];
  if (space.primitive == schedule::PrimitiveKind::kSampleCategorical && options.step_share > 0 &&
      rng.chance(options.step_share)) {
    const auto last = static_cast<int64_t>(space.values.size()) - 1;
    const int64_t step = rng.chance(0.5) ? 1 : -1;
    const int64_t moved = decision[0] + step;
    decision[0] = moved < 0 || moved > last ? decision[0] - step : moved;
    return;
  }
  decision = schedule::mutate_decision(space, decision, rng);
}

}  // namespace

Genome mutate(const SearchSpace& space, const Genome& parent, const MutationOptions& options,
              Rng& rng) {
  Genome child = parent;
  const auto& spaces = space.sketches[static_cast<std::size_t>(parent.sketch)].spaces;
  change_one(spaces, options, child, rng);
  if (options.second_share > 0 && rng.chance(options.second_share)) {
    change_one(spaces, options, child, rng);
  }
  if (space.members == nullptr) return child;
  const Members& members = *space.members;
  const int member = members.nearest(parent.sketch, child.decisions,
                                     members.find(parent.sketch, parent.decisions));
  if (member < 0) return parent;
  return {parent.sketch, members.candidate(member).trace.decisions};
}

Genome crossover(const SearchSpace& space, const Genome& mother, const Genome& father, Rng& rng) {
  Genome child = mother;
  for (std::size_t i = 0; i < child.decisions.size(); ++i) {
    if (rng.chance(0.5)) child.decisions[i] = father.decisions[i];
  }
  return nearest_member(space, std::move(child));
}

}  // namespace prunerc::search
