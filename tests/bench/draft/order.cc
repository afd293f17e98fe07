#include "tests/bench/draft/order.h"

#include "ir/support/rng.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace prunerc::bench {
namespace {

std::vector<double> ranks(std::span<const double> v) {
  std::vector<std::size_t> order(v.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t x, std::size_t y) { return v[x] < v[y]; });
  std::vector<double> out(v.size());
  for (std::size_t i = 0; i < order.size();) {
    std::size_t j = i;
    while (j < order.size() && v[order[j]] == v[order[i]]) ++j;
    for (std::size_t t = i; t < j; ++t) out[order[t]] = 0.5 * static_cast<double>(i + j - 1);
    i = j;
  }
  return out;
}

}  // namespace

double rank_correlation(std::span<const double> a, std::span<const double> b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double mean = (static_cast<double>(x.size()) - 1) / 2;
  double xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mean) * (y[i] - mean);
    xx += (x[i] - mean) * (x[i] - mean);
    yy += (y[i] - mean) * (y[i] - mean);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}

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
