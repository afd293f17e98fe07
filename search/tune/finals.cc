#include "search/tune/finals.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace prunerc::search {
namespace {

/// Above the few percent by which a clock wanders and a lucky time is too low, and below what
/// other work on the machine costs.
constexpr double kQuiet = 1.15;

double best_of(std::size_t candidate, std::span<const FinalTurn> turns,
               std::span<const double> before) {
  double best = before[candidate] > 0 ? before[candidate] : std::numeric_limits<double>::infinity();
  for (const FinalTurn& turn : turns) {
    if (turn[candidate] > 0) best = std::min(best, turn[candidate]);
  }
  return best;
}

// 1 if nothing ran: a turn of failures says nothing against itself.
double slowdown_of(const FinalTurn& turn, std::span<const FinalTurn> turns,
                   std::span<const double> before) {
  std::vector<double> factors;
  for (std::size_t i = 0; i < turn.size(); ++i) {
    if (turn[i] > 0) factors.push_back(turn[i] / best_of(i, turns, before));
  }
  if (factors.empty()) return 1;
  std::sort(factors.begin(), factors.end());
  return factors[factors.size() / 2];
}

}  // namespace

std::vector<std::size_t> quiet_turns(std::span<const FinalTurn> turns,
                                     std::span<const double> before) {
  std::vector<double> slowdowns;
  for (const FinalTurn& turn : turns) slowdowns.push_back(slowdown_of(turn, turns, before));
  std::vector<std::size_t> order(turns.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return slowdowns[a] < slowdowns[b]; });
  const std::size_t least = turns.size() < kMaxFinalTurns ? 0 : kFinalTurns;
  std::size_t num_quiet = 0;
  while (num_quiet < order.size() && (num_quiet < least || slowdowns[order[num_quiet]] <= kQuiet)) {
    ++num_quiet;
  }
  order.resize(num_quiet);
  std::sort(order.begin(), order.end());
  return order;
}

bool is_decided(std::span<const FinalTurn> turns, std::span<const double> before) {
  return turns.size() >= kMaxFinalTurns || quiet_turns(turns, before).size() >= kFinalTurns;
}

}  // namespace prunerc::search
