#include "costmodel/nn/rank_loss.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <numeric>
#include <vector>

namespace prunerc::costmodel::nn {
namespace {

/// Of the release.
constexpr double kClamp = 1e-10;

// 1 / log2(1 + place), places from 1.
double discount(std::size_t place) { return 1 / std::log2(1 + static_cast<double>(place)); }

// What a pair's weight is made of, by index of the list.
struct Ranking {
  std::vector<double> discounts;  // at the place in the order of the scores
  std::vector<double> gains;      // as parts of the best discounted sum

  template <typename T>
  Ranking(std::span<const T> scores, std::span<const T> labels)
      : discounts(scores.size()), gains(scores.size()) {
    std::vector<std::size_t> order(scores.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return scores[a] > scores[b]; });
    for (std::size_t i = 0; i < order.size(); ++i) discounts[order[i]] = discount(i + 1);
    for (std::size_t i = 0; i < gains.size(); ++i) {
      gains[i] = std::exp2(static_cast<double>(labels[i])) - 1;
    }
    std::vector<double> best = gains;
    std::sort(best.begin(), best.end(), std::greater<>());
    double sum = 0;
    for (std::size_t i = 0; i < best.size(); ++i) sum += best[i] * discount(i + 1);
    for (double& gain : gains) gain = sum > 0 ? gain / sum : 0;
  }
  double weight(std::size_t i, std::size_t j) const {
    return std::abs(discounts[i] - discounts[j]) * std::abs(gains[i] - gains[j]);
  }
};

// log(1 + exp(x)) without overflow, and its slope.
struct SoftPlus {
  double value, slope;
};
SoftPlus soft_plus(double x) {
  const double small = std::exp(-std::abs(x));
  const double value = std::max(x, 0.0) + std::log1p(small);
  const double slope = x >= 0 ? 1 / (1 + small) : small / (1 + small);
  return {value, slope};
}

// Calls f(i, j) for every pair with labels[i] > labels[j].
template <typename T, typename F>
void for_each_pair(std::span<const T> labels, F&& f) {
  for (std::size_t i = 0; i < labels.size(); ++i) {
    for (std::size_t j = 0; j < labels.size(); ++j) {
      if (labels[i] > labels[j]) f(i, j);
    }
  }
}

}  // namespace

template <typename T>
double lambda_rank_published(std::span<const T> scores, std::span<const T> labels, std::span<T> d) {
  const Ranking ranking(scores, labels);
  const double floor = std::log2(kClamp);
  std::vector<double> slopes(scores.size(), 0);
  double loss = 0;
  for_each_pair(labels, [&](std::size_t i, std::size_t j) {
    const double weight = ranking.weight(i, j);
    const SoftPlus term =
        soft_plus(static_cast<double>(scores[j]) - static_cast<double>(scores[i]));
    const double log_sigmoid = -term.value / std::numbers::ln2;
    const double power = weight * std::max(log_sigmoid, floor);
    loss -= std::max(power, floor);
    if (log_sigmoid <= floor || power <= floor) return;
    const double slope = weight * term.slope / std::numbers::ln2;
    slopes[i] -= slope;
    slopes[j] += slope;
  });
  for (std::size_t i = 0; i < slopes.size(); ++i) d[i] = static_cast<T>(slopes[i]);
  return loss;
}

template <typename T>
double lambda_rank(std::span<const T> scores, std::span<const T> labels,
                   const RankLossOptions& options, std::span<T> d) {
  const Ranking ranking(scores, labels);
  double sum = 0;
  int64_t pairs = 0;
  for_each_pair(labels, [&](std::size_t i, std::size_t j) {
    sum += ranking.weight(i, j);
    ++pairs;
  });
  std::vector<double> slopes(scores.size(), 0);
  double loss = 0;
  if (pairs > 0) {
    // A list where no weight is left, as by failed candidates alone, is ordered evenly.
    const double even_share = sum > 0 ? options.even_share : 1;
    const double even = even_share / static_cast<double>(pairs);
    const double weighted = sum > 0 ? (1 - even_share) / sum : 0;
    for_each_pair(labels, [&](std::size_t i, std::size_t j) {
      const double weight = (even + weighted * ranking.weight(i, j)) / std::numbers::ln2;
      const SoftPlus term =
          soft_plus(static_cast<double>(scores[j]) - static_cast<double>(scores[i]));
      loss += weight * term.value;
      slopes[i] -= weight * term.slope;
      slopes[j] += weight * term.slope;
    });
  }
  for (std::size_t i = 0; i < slopes.size(); ++i) d[i] = static_cast<T>(slopes[i]);
  return loss;
}

template <typename T>
double huber(std::span<const T> predicted, std::span<const T> target, double knee, std::span<T> d) {
  std::size_t count = 0;
  for (const T t : target) count += std::isfinite(t) ? 1 : 0;
  const double share = count == 0 ? 0 : 1 / static_cast<double>(count);
  double loss = 0;
  for (std::size_t i = 0; i < target.size(); ++i) {
    d[i] = 0;
    if (!std::isfinite(target[i])) continue;
    const double error = static_cast<double>(predicted[i]) - static_cast<double>(target[i]);
    const double size = std::abs(error);
    loss += share * (size <= knee ? 0.5 * error * error : knee * (size - 0.5 * knee));
    d[i] = static_cast<T>(share * std::clamp(error, -knee, knee));
  }
  return loss;
}

#define PRUNERC_INSTANTIATE(T)                                                                    \
  template double lambda_rank_published<T>(std::span<const T>, std::span<const T>, std::span<T>); \
  template double lambda_rank<T>(std::span<const T>, std::span<const T>, const RankLossOptions&,  \
                                 std::span<T>);                                                   \
  template double huber<T>(std::span<const T>, std::span<const T>, double, std::span<T>);
PRUNERC_INSTANTIATE(float)
PRUNERC_INSTANTIATE(double)
#undef PRUNERC_INSTANTIATE

}  // namespace prunerc::costmodel::nn
