// Pruner's latent schedule explorer: a genetic algorithm on the published analyzer alone, whose best
// candidates are what the learned model is asked about.
#ifndef PRUNERC_SEARCH_STRATEGY_EXPLORER_H_
#define PRUNERC_SEARCH_STRATEGY_EXPLORER_H_

#include "search/space/draft_space.h"
#include "search/space/variation.h"
#include "search/strategy/population.h"

#include <vector>

namespace prunerc::search {

/// Published values (Qiao et al., ASPLOS 2025, and its source; costmodel/pruner/ORIGINAL.md).
struct ExplorerOptions {
  Analyzer analyzer = Analyzer::kPrunerRelease;
  int draft_size = 512;     // handed to the learned model
  int generations = 2;      // after the random sample, each as large
  int redraft_every = 2;    // rounds of this task
  int ranked_draws = 1536;  // of the random sample: ranked by the learned model as well
};

class Explorer {
 public:
  Explorer(const StrategyContext& context, const ExplorerOptions& options);

  /// The best of the sample and of its generations that were not tried yet, best first, each once.
  /// Parents are drawn from the generation before by a roulette of 1 / latency; children are mutations
  /// with the chance `mutation_share`, else copies.
  std::vector<Genome> explore(const std::vector<Genome>& sample, double mutation_share,
                              const MutationOptions& mutation, Population& population, Rng& rng);

 private:
  std::vector<double> scores(const std::vector<Genome>& genomes);

  const StrategyContext context_;
  const ExplorerOptions options_;
  DraftSpace space_;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_EXPLORER_H_
