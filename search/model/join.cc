#include "search/model/join.h"

#include "ir/support/check.h"

#include <algorithm>
#include <numeric>

namespace prunerc::search {
namespace {

/// Measurements with which model and corrected analyzer count alike.
constexpr double kEven = 96;

std::vector<double> ranks(std::span<const double> scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Stable, since a score that is no number may spoil the order and nothing else.
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  std::vector<double> out(scores.size());
  const double most = std::max<double>(1, static_cast<double>(scores.size()) - 1);
  for (std::size_t i = 0; i < order.size();) {
    std::size_t end = i + 1;
    while (end < order.size() && scores[order[end]] == scores[order[i]]) ++end;
    const double rank = static_cast<double>(i + end - 1) / 2 / most;
    for (; i < end; ++i) out[order[i]] = rank;
  }
  return out;
}

}  // namespace

double model_weight(double num_measured) { return num_measured / (num_measured + kEven); }

std::vector<double> join_ranks(std::span<const double> model, std::span<const double> analyzer,
                               double model_weight) {
  PRUNERC_CHECK(model.size() == analyzer.size(), "scores of the same candidates");
  std::vector<double> out = ranks(model);
  const std::vector<double> other = ranks(analyzer);
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = model_weight * out[i] + (1 - model_weight) * other[i];
  }
  return out;
}

}  // namespace prunerc::search
