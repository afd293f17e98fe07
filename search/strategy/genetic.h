// The genetic proposer: a first population from what was measured and from chance, then generations
// of children, ranked by the scorer. Ours, Ansor's and MetaSchedule's are settings of it.
#ifndef PRUNERC_SEARCH_STRATEGY_GENETIC_H_
#define PRUNERC_SEARCH_STRATEGY_GENETIC_H_

#include "search/model/tree_scorer.h"
#include "search/space/variation.h"
#include "search/strategy/population.h"

#include <cstdint>
#include <memory>

namespace prunerc::search {

/// Who breeds, and how parents are drawn from these.
enum class Breeding : uint8_t {
  kTournament,  // the better half of all so far; the best of three drawn ranks
  kRoulette,    // the last generation; chances proportional to scores
};

/// What a round begins with.
enum class FirstPopulation : uint8_t {
  kMeasuredThenDraws,  // the fastest measured (before there are any the heuristics), filled with draws
  kDrawsThenMeasured,  // `fresh` draws, and the fastest measured beside them
};

struct GeneticOptions {
  FirstPopulation first = FirstPopulation::kMeasuredThenDraws;
  int population = 192;
  int fresh = 0;                // draws of kDrawsThenMeasured
  double measured_share = 0.4;  // of the population: the fastest measured, if there are so many
  Breeding breeding = Breeding::kTournament;
  int generations = 3;          // after the first population
  double mutation_share = 0.6;  // of the children; the rest are crossovers or copies of a parent
  bool crossover = true;
  MutationOptions mutation;
  PopulationOptions batch;
  TreeScorerOptions trees;  // of those that are ranked by trees
};

/// Ansor's published settings: 2048 schedules, 4 generations, trees from scratch every round; no
/// heuristic schedules, no crossover, no analyzer.
GeneticOptions ansor_options();
/// MetaSchedule's: 512 schedules, 4 generations, trees from 100 measurements on that are trained again
/// when there are a fifth more.
GeneticOptions metaschedule_options();

std::unique_ptr<Proposer> make_genetic_proposer(const GeneticOptions& options);

/// By the analyzer, corrected by measured neighbours.
std::unique_ptr<Strategy> make_evolution(const StrategyContext& context,
                                         const GeneticOptions& options = {});

/// By the context's network; without one by boosted trees. Errors: ModelLibrary, if these are not
/// there.
Result<std::unique_ptr<Strategy>> make_learned(const StrategyContext& context,
                                               const GeneticOptions& options);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_GENETIC_H_
