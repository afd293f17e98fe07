#include "search/strategy/explorer.h"

#include "search/strategy/roulette.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace prunerc::search {

Explorer::Explorer(const StrategyContext& context, const ExplorerOptions& options)
    : context_(context),
      options_(options),
      space_(make_draft_space(context.task, context.space, options.analyzer, context.seed, {},
                              &context.pool)) {}

// 1 / latency; 0 of what breaks a limit.
std::vector<double> Explorer::scores(const std::vector<Genome>& genomes) {
  const std::vector<SymbolicScore> symbolic = score_genomes(space_, genomes);
  return context_.pool.map<double>(genomes.size(), [&](std::size_t i) {
    double latency = symbolic[i].fits ? symbolic[i].latency : 0;
    if (!symbolic[i].is_known) {
      const Genome& genome = genomes[i];
      const Result<Candidate> made =
          instantiate(context_.task, context_.space, genome.sketch, genome.decisions);
      if (made) latency = published_latency_ms(made->program, context_.task, options_.analyzer);
    }
    return latency > 0 && std::isfinite(latency) ? 1 / latency : 0;
  });
}

std::vector<Genome> Explorer::explore(const std::vector<Genome>& sample, double mutation_share,
                                      const MutationOptions& mutation, Population& population,
                                      Rng& rng) {
  std::map<Genome, double> seen;
  std::vector<Genome> generation = sample;
  for (int g = 0; !generation.empty(); ++g) {
    const std::vector<double> weights = scores(generation);
    population.count_drafted(generation.size());
    for (std::size_t i = 0; i < generation.size(); ++i) {
      if (weights[i] > 0 && !population.was_tried(generation[i])) {
        seen.emplace(generation[i], weights[i]);
      }
    }
    if (g == options_.generations) break;
    const Roulette roulette(weights);
    std::vector<Genome> children;
    while (children.size() < sample.size()) {
      const Genome& parent = generation[roulette.draw(rng)];
      const bool changes = rng.chance(mutation_share);
      children.push_back(changes ? mutate(context_.space, parent, mutation, rng) : parent);
    }
    generation = std::move(children);
  }
  std::vector<std::pair<double, Genome>> ranked;
  for (const auto& [genome, score] : seen) ranked.emplace_back(score, genome);
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Genome> out;
  for (auto& [score, genome] : ranked) {
    if (out.size() < static_cast<std::size_t>(options_.draft_size))
      out.push_back(std::move(genome));
  }
  return out;
}

}  // namespace prunerc::search
