#include "tests/bench/draft/order.h"

#include "ir/support/rng.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace prunerc::bench {

double best_of_first(std::span<const double> measured, std::span<const double> predicted,
                     std::size_t k, std::span<const uint64_t> seeds) {
  const double best = *std::min_element(measured.begin(), measured.end());
  k = std::min(k, measured.size());
  double total = 0;
  for (const uint64_t seed : seeds) {
    Rng rng(seed, measured.size());
    std::vector<std::size_t> order(measured.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[rng.below(i)]);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t x, std::size_t y) { return predicted[x] < predicted[y]; });
    double found = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < k; ++i) found = std::min(found, measured[order[i]]);
    total += best / found;
  }
  return total / static_cast<double>(seeds.size());
}

// Candidate i of the sorted ones is the best with the chance that none before it was drawn.
double best_of_drawn(std::span<const double> measured, std::size_t k) {
  std::vector<double> sorted(measured.begin(), measured.end());
  std::sort(sorted.begin(), sorted.end());
  const auto n = static_cast<double>(sorted.size());
  double none_before = 1, total = 0;
  for (std::size_t i = 0; i < sorted.size() && none_before > 0; ++i) {
    const double left = n - static_cast<double>(i);
    const double taken = std::min(1.0, static_cast<double>(k) / left);
    total += none_before * taken * sorted[0] / sorted[i];
    none_before *= 1 - taken;
  }
  return total;
}

}  // namespace prunerc::bench
