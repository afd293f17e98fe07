// Roulette: indices drawn with chances proportional to weights.
#ifndef PRUNERC_SEARCH_STRATEGY_ROULETTE_H_
#define PRUNERC_SEARCH_STRATEGY_ROULETTE_H_

#include "ir/support/rng.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

namespace prunerc::search {

/// Of at least one weight; negative ones count as 0. All are equal if none is above 0.
class Roulette {
 public:
  explicit Roulette(std::span<const double> weights) {
    double total = 0;
    for (const double weight : weights) sums_.push_back(total += std::max(0.0, weight));
  }
  std::size_t draw(Rng& rng) const {
    if (sums_.back() <= 0) return static_cast<std::size_t>(rng.below(sums_.size()));
    const double at = rng.uniform() * sums_.back();
    const auto found = std::upper_bound(sums_.begin(), sums_.end(), at);
    return static_cast<std::size_t>(std::min(found, sums_.end() - 1) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_ROULETTE_H_
