#include "search/space/variation.h"

#include "schedule/schedule.h"
#include "search/space/members.h"

#include <algorithm>

namespace prunerc::search {
namespace {

/// Candidates of a categorical decision are sorted, so its neighbours are similar schedules.
constexpr double kStepShare = 0.6;
/// A second decision changes along, now and then: some are only good together.
constexpr double kSecondChange = 0.3;

void change_one(const std::vector<schedule::DecisionSpace>& spaces, Genome& genome, Rng& rng) {
  std::vector<std::size_t> open;
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    if (spaces[i].count() > 1) open.push_back(i);
  }
  if (open.empty()) return;
  const std::size_t at = open[static_cast<std::size_t>(rng.below(open.size()))];
  const schedule::DecisionSpace& space = spaces[at];
  schedule::Decision& decision = genome.decisions[at];
  if (space.primitive == schedule::PrimitiveKind::kSampleCategorical && rng.chance(kStepShare)) {
    const auto last = static_cast<int64_t>(space.values.size()) - 1;
    const int64_t step = rng.chance(0.5) ? 1 : -1;
    const int64_t moved = decision[0] + step;
    decision[0] = moved < 0 || moved > last ? decision[0] - step : moved;
    return;
  }
  decision = schedule::mutate_decision(space, decision, rng);
}

}  // namespace

Genome mutate(const SearchSpace& space, const Genome& parent, Rng& rng) {
  Genome child = parent;
  const auto& spaces = space.sketches[static_cast<std::size_t>(parent.sketch)].spaces;
  change_one(spaces, child, rng);
  if (rng.chance(kSecondChange)) change_one(spaces, child, rng);
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
