// Variation of genomes: one decision changed, or the decisions of two parents of one sketch mixed.
#ifndef PRUNERC_SEARCH_SPACE_VARIATION_H_
#define PRUNERC_SEARCH_SPACE_VARIATION_H_

#include "ir/support/rng.h"
#include "search/space/candidate.h"
#include "search/space/space.h"

namespace prunerc::search {

/// Which decision of a parent changes, and how far.
struct MutationOptions {
  /// Chance that a tile changes and not another decision; negative: all decisions alike.
  double tile_share = -1;
  /// Chance that a categorical decision moves by one: its candidates are sorted, so that neighbours
  /// are similar schedules.
  double step_share = 0.6;
  /// Chance that a second decision changes along: some are only good together.
  double second_share = 0.3;
};

/// One decision moves to a neighbour (an index by one step, a prime between two tiles) or, less
/// often, anywhere. The parent itself if nothing can be changed. In a space with members: the
/// member nearest to that, other than the parent.
Genome mutate(const SearchSpace& space, const Genome& parent, const MutationOptions& options,
              Rng& rng);

/// Each decision from one of the parents, which must be of one sketch. Legal by construction as far
/// as decisions go. In a space with members: the member nearest to that.
Genome crossover(const SearchSpace& space, const Genome& mother, const Genome& father, Rng& rng);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_VARIATION_H_
