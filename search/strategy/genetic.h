// The genetic proposer: a first population from what was measured and from chance, then generations
// of children, ranked by the scorer. Ours, Ansor's, MetaSchedule's and the published Pruner's are
// settings of it.
#ifndef PRUNERC_SEARCH_STRATEGY_GENETIC_H_
#define PRUNERC_SEARCH_STRATEGY_GENETIC_H_

#include "search/space/variation.h"
#include "search/strategy/explorer.h"
#include "search/strategy/population.h"

#include <cstdint>
#include <memory>
#include <optional>

namespace prunerc::search {

/// Who breeds, and how parents are drawn from these.
enum class Breeding : uint8_t {
  kTournament,  // the better half of all so far; the best of three drawn ranks
  kRoulette,    // the last generation; chances proportional to scores
};

/// What a round begins with.
enum class FirstPopulation : uint8_t {
  kMeasuredThenDraws,  // the fastest measured (before there are any the heuristics), filled with draws
  kDrawsThenMeasured,  // draws, and the fastest measured beside them
};

struct GeneticOptions {
  FirstPopulation first = FirstPopulation::kMeasuredThenDraws;
  int population = 192;
  double measured_share = 0.4;  // of the population: the fastest measured, if there are so many
  Breeding breeding = Breeding::kTournament;
  int generations = 3;          // after the first population
  double mutation_share = 0.6;  // of the children; the rest are crossovers or copies of a parent
  bool crossover = true;
  MutationOptions mutation;
  PopulationOptions batch;
  /// What it drafts stands before the draws of the first population, whose measured ones follow. None:
  /// all draws are ranked. Of kDrawsThenMeasured.
  std::optional<ExplorerOptions> explorer;
};

/// Ansor's published settings: 2048 schedules, 4 generations; no heuristic schedules, no crossover.
GeneticOptions ansor_options();
/// MetaSchedule's: 512 schedules, 4 generations.
GeneticOptions metaschedule_options();
/// The published Pruner's: 1,536 schedules, two generations of them on the analyzer alone, of which 512
/// are drafted every second round. The release ranks these by the learned model with the whole random
/// sample, the best measured, and one generation of children; the paper with a few random schedules
/// (algorithm 1; how many is not known to us: a tenth).
GeneticOptions pruner_release_options();
GeneticOptions pruner_paper_options();

std::unique_ptr<Strategy> make_genetic(const StrategyContext& context,
                                       const GeneticOptions& options,
                                       std::unique_ptr<Scorer> scorer);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_GENETIC_H_
