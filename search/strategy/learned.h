// The published searches on a learned model alone: a genetic algorithm over schedules, boosted
// trees over Ansor's features, trained anew on what was measured. Baselines for ours.
#ifndef PRUNERC_SEARCH_STRATEGY_LEARNED_H_
#define PRUNERC_SEARCH_STRATEGY_LEARNED_H_

#include "costmodel/xgb.h"
#include "search/strategy/strategies.h"

#include <memory>

namespace prunerc::search {

struct LearnedOptions {
  int population = 2048;
  int generations = 4;          // after the first population: each is scored
  double mutation = 0.85;       // chance that a selected parent is changed and not copied
  double tile_mutation = 0.9;   // of the changes: chance that a tile vector is the one
  double eps_greedy = 0.05;     // of a batch: drawn at random from the first population
  double measured_share = 0.2;  // of the population: the fastest measured, if there are so many
  int fresh = 2048;             // random schedules in the first population
  int heap_factor = 2;          // best unmeasured ones that are kept, in batches
  int first_training = 1;       // samples before the model says anything; random order until then
  double retrain_growth = 0;    // the data must have grown by this part since the last training
  costmodel::TreeOptions trees;
  /// Asked instead of trees if it is there.
  std::shared_ptr<OnlineModel> network;
};

/// Ansor's published settings: 2048 schedules, 4 generations, a model from scratch every round.
LearnedOptions ansor_options();
/// MetaSchedule's: 512 schedules, 4 generations, a model from 100 samples on that is retrained when
/// the data grew by a fifth.
LearnedOptions metaschedule_options();

/// No heuristic schedules, no analytic model, no crossover: as published. Everything in `context`
/// must outlive the strategy. Errors: ModelLibrary, if there is no network.
Result<std::unique_ptr<Strategy>> make_learned(const StrategyContext& context,
                                               const LearnedOptions& options);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_LEARNED_H_
