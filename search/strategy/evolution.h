// The evolutionary strategy: parents from what was measured and from chance, children by mutation
// and crossover, the cost model picks. Without the model it is the random strategy.
#ifndef PRUNERC_SEARCH_STRATEGY_EVOLUTION_H_
#define PRUNERC_SEARCH_STRATEGY_EVOLUTION_H_

#include "costmodel/cost_model.h"
#include "ir/support/parallel.h"
#include "search/space/space.h"
#include "search/space/task.h"
#include "search/strategy/strategy.h"

#include <cstdint>
#include <memory>

namespace prunerc::search {

struct StrategyOptions {
  uint64_t seed = 0;
  uint64_t stream = 0;    // tells tasks of one call apart
  bool use_model = true;  // false: every candidate is drawn at random (strategy `random`)
  int population = 192;
  int generations = 3;
  double mutation_share = 0.6;  // of the children; the rest are crossovers
  double random_share =
      0.1;  // of a batch: drawn at random, so that a wrong model cannot starve a sketch
  double measured_share = 0.4;  // of the parents: the fastest measured ones, if there are so many
};

/// task, space, model and pool must outlive the strategy. The first candidates are the sketches'
/// heuristic decisions.
std::unique_ptr<Strategy> make_evolution(const Task& task, const SearchSpace& space,
                                         const costmodel::CostModel& model, ThreadPool& pool,
                                         const StrategyOptions& options);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_EVOLUTION_H_
