#include "tests/bench/costmodel/runs.h"

#include "ir/support/rng.h"

#include <fmt/format.h>

#include <algorithm>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search

namespace {

/// Differences of one operator: its tasks on all platforms, of all seeds.
struct Cluster {
  double sum = 0;
  std::size_t pairs = 0;
};

double mean_of(const std::vector<Cluster>& clusters) {
  Cluster all;
  for (const Cluster& c : clusters) {
    all.sum += c.sum;
    all.pairs += c.pairs;
  }
  return all.sum / static_cast<double>(std::max<std::size_t>(1, all.pairs));
}
}  // namespace

double mean_of(const std::map<int32_t, TaskQuality>& tasks, Field field) {
  double sum = 0;
  for (const auto& [task, quality] : tasks) sum += quality.*field;
  return sum / static_cast<double>(std::max<std::size_t>(1, tasks.size()));
}

Row sums_row(const std::string& name, const std::vector<Run>& runs, Field field) {
  std::vector<double> ratios;
  double mean = 0;
  for (const Run& run : runs) {
    double best = 0, chosen = 0;
    for (const auto& [task, quality] : run.tasks) {
      best += quality.best_ns;
      chosen += quality.best_ns / (quality.*field);
    }
    ratios.push_back(best / chosen);
    mean += ratios.back() / static_cast<double>(runs.size());
  }
  const auto [low, high] = std::minmax_element(ratios.begin(), ratios.end());
  return {name, mean, "", std::nullopt, fmt::format("{:.3f} to {:.3f}", *low, *high)};
}

Row mean_row(const std::string& name, const std::vector<Run>& runs, Field field,
             std::optional<double> goal) {
  std::vector<double> means;
  for (const Run& run : runs) means.push_back(mean_of(run.tasks, field));
  double mean = 0;
  for (const double m : means) mean += m / static_cast<double>(means.size());
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  return {name, mean, "", goal, fmt::format("{:.3f} to {:.3f}", *low, *high)};
}

Difference paired(const std::vector<Run>& a, const std::vector<Run>& b, Field field,
                  const std::map<int32_t, std::string>& operators, int resamplings) {
  std::map<std::string, Cluster> by_operator;
  Difference out;
  for (std::size_t i = 0; i < a.size(); ++i) {
    for (const auto& [task, quality] : a[i].tasks) {
      const auto other = b[i].tasks.find(task);
      const auto name = operators.find(task);
      if (other == b[i].tasks.end() || name == operators.end()) continue;
      Cluster& cluster = by_operator[name->second];
      cluster.sum += quality.*field - other->second.*field;
      ++cluster.pairs;
      ++out.pairs;
    }
  }
  std::vector<Cluster> clusters;
  for (const auto& [name, cluster] : by_operator) clusters.push_back(cluster);
  out.operators = clusters.size();
  out.mean = mean_of(clusters);
  if (clusters.size() < 2 || resamplings == 0) return out;
  std::vector<double> means;
  Rng rng(7);
  for (int r = 0; r < resamplings; ++r) {
    std::vector<Cluster> drawn;
    for (std::size_t i = 0; i < clusters.size(); ++i) {
      drawn.push_back(clusters[rng.below(clusters.size())]);
    }
    means.push_back(mean_of(drawn));
  }
  std::sort(means.begin(), means.end());
  out.low = means[means.size() / 40];
  out.high = means[means.size() - 1 - means.size() / 40];
  return out;
}

Row difference_row(const std::string& name, const Difference& d, std::optional<double> goal) {
  const std::string note =
      d.operators < 2
          ? fmt::format("no interval: one operator, {} pairs", d.pairs)
          : fmt::format("95 %: {:+.3f} to {:+.3f} over resampled operators ({}), {} pairs", d.low,
                        d.high, d.operators, d.pairs);
  return {name, d.mean, "", goal, note};
}

std::map<std::string, std::map<int32_t, std::string>> operators_by_class(const Corpus& corpus) {
  std::map<std::string, std::map<int32_t, std::string>> out;
  for (std::size_t p = 0; p < corpus.pools.size(); ++p) {
    const Pool& pool = corpus.pools[p];
    out[""][corpus.task[p]] = out["/" + class_of(pool)][corpus.task[p]] = pool.program;
  }
  return out;
}

}  // namespace prunerc::bench
