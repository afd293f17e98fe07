// Which of all sketches' candidates make the draft.
#ifndef PRUNERC_SEARCH_STRATEGY_SELECTION_H_
#define PRUNERC_SEARCH_STRATEGY_SELECTION_H_

#include "search/strategy/drafter.h"

#include <cstddef>
#include <vector>

namespace prunerc::search {

/// A drafted candidate of some sketch.
struct DraftPick {
  int sketch = 0;  // index into DraftSpace::sketches
  Drafted drafted;
};

struct SelectionOptions {
  std::size_t size = 512;
  double stratified_share = 0.4;
  double uniform_share = 0.1;
};

/// What one sketch offers: its best, best first, and a uniform sample.
struct SketchOffer {
  std::vector<Drafted> best;
  std::vector<Drafted> sample;
  int64_t num_scored = 0;
};

/// At most `size` candidates without repetitions, in the order: a quota of each sketch's best and
/// the best of all, by analyzer; then the uniform ones. Of one cluster, candidates of a sketch
/// whose innermost tiles agree, at most an eighth is taken from the best of all, so that a single
/// register tile does not fill the draft; if that leaves places, the cap is lifted.
std::vector<DraftPick> select_draft(const std::vector<SketchOffer>& offers, const DraftSpace& space,
                                    const SelectionOptions& options);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_SELECTION_H_
