#include "search/tune/instant.h"

#include "search/model/network_scorer.h"
#include "search/strategy/network_use.h"
#include "search/strategy/strategies.h"

#include <algorithm>
#include <memory>
#include <numeric>

namespace prunerc::search {
namespace {

/// Candidates of the draft that are looked at: the sketches' defaults and what stands in front.
constexpr std::size_t kCandidates = 64;

// Adds to `places` where each stands in the order of these scores; 0 for the best.
void add_places(const std::vector<double>& scores, std::vector<std::size_t>* places) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
  for (std::size_t i = 0; i < order.size(); ++i) (*places)[order[i]] += i;
}

}  // namespace

Result<Candidate> instant_candidate(const Task& task, const SearchSpace& space, ThreadPool& pool) {
  StrategyContext context = {task, space, pool};
  PRUNERC_TRY(context.network, open_network(*network_use(StrategyKind::kPruner), "",
                                            task.target.kind, context.seed));
  PRUNERC_TRY(const std::unique_ptr<Strategy> strategy,
              make_strategy(StrategyKind::kPruner, context));
  std::vector<Candidate> drafted = strategy->ask(kCandidates);
  std::erase_if(drafted, [](const Candidate& c) { return c.predicted_ns <= 0; });
  if (drafted.empty()) return heuristic_candidate(task, space);
  std::vector<std::size_t> places(drafted.size());
  std::vector<double> scores;
  for (const Candidate& c : drafted) scores.push_back(-c.predicted_ns);
  add_places(scores, &places);
  NetworkScorer network(task, space, context.network, 0, pool);
  if (network.is_trained()) add_places(network.scores(drafted), &places);
  const auto best = std::min_element(places.begin(), places.end()) - places.begin();
  return std::move(drafted[static_cast<std::size_t>(best)]);
}

}  // namespace prunerc::search
