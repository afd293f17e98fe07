// Draft, then verify: the analyzer goes through very many candidates, a learned model ranks the few
// that it likes, the best of these are measured.
#ifndef PRUNERC_SEARCH_STRATEGY_DRAFT_H_
#define PRUNERC_SEARCH_STRATEGY_DRAFT_H_

#include "search/model/scorer.h"
#include "search/strategy/population.h"

#include <cstdint>
#include <memory>

namespace prunerc::search {

struct DraftOptions {
  int draft_size = 512;           // handed from the analyzer to the model
  int max_draft_size = 2048;      // what the recall guard may widen it to; equal: no guard
  int64_t draws = 3'000;          // of a draft, over all sketches, uniform
  int64_t children = 3'000;       // bred from the best of these
  int redraft_every = 2;          // rounds of this task
  double uniform_share = 0.1;     // of the draft: drawn, not chosen
  double measured_share = 0.25;   // as many again: children of the fastest measured, liked or not
  double random_share = 0.1;      // of a batch: from the uniform sample (epsilon-greedy)
  double stratified_share = 0.4;  // of the draft: equal quotas for all sketches
  bool calibrate = true;          // the analyzer's coefficients follow the measurements
  bool blend =
      true;  // few measurements: the analyzer's rank counts as well; false: the model alone
};

/// Ranks by `learned` joined with the analyzer; null: by the analyzer alone, corrected by neighbours.
std::unique_ptr<Strategy> make_draft_strategy(const StrategyContext& context,
                                              std::unique_ptr<Scorer> learned,
                                              const DraftOptions& options);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_DRAFT_H_
