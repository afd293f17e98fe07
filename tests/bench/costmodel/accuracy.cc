#include "ir/support/check.h"
#include "ir/support/rng.h"
#include "search/model/dataset.h"
#include "search/model/quality.h"
#include "search/model/ranker.h"
#include "tests/bench/costmodel/rows.h"
#include "tests/bench/costmodel/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search

namespace {

/// What one model reached on the held-out tasks of one split.
struct Run {
  int seed = 0;
  std::map<int32_t, TaskQuality> tasks;
};

std::vector<RankerKind> wanted(const ModelOptions& options) {
  std::vector<RankerKind> out;
  for (int i = 0; i < kNumRankers; ++i) {
    const auto kind = static_cast<RankerKind>(i);
    const bool named = std::find(options.models.begin(), options.models.end(), to_string(kind)) !=
                       options.models.end();
    if (options.models.empty() || named) out.push_back(kind);
  }
  return out;
}

Run run_once(const Corpus& corpus, RankerKind kind, double volume, int seed,
             const ModelOptions& options, ThreadPool& threads) {
  const auto s = static_cast<uint64_t>(seed);
  const Split split = split_by_operator(corpus, seed, options);
  const std::vector<CorpusRow> kept =
      volume < 1 ? search::prune_rows(corpus, split.train, PruneKind::kRandom, volume, s)
                 : split.train;
  const auto train = make_dataset(corpus, kept, inputs_of(kind), threads).value();
  const auto test = make_dataset(corpus, split.test, inputs_of(kind), threads).value();
  Run out;
  out.seed = seed;
  RankerOptions ranker;
  ranker.seed = s;
  ranker.epochs = options.epochs;
  const Result<Ranker> made = train_ranker(kind, train, ranker, threads);
  PRUNERC_CHECK(made.ok(), made.ok() ? "" : made.error().message().c_str());
  for (const TaskQuality& task : quality_of(test, (*made)(test, threads))) {
    out.tasks[task.task] = task;
  }
  return out;
}

using Field = double TaskQuality::*;

double mean_of(const std::map<int32_t, TaskQuality>& tasks, Field field) {
  double sum = 0;
  for (const auto& [task, quality] : tasks) sum += quality.*field;
  return sum / static_cast<double>(std::max<std::size_t>(1, tasks.size()));
}

// TenSet's top-k: the best times' sum over the chosen ones' sum, so that slow tasks count more.
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

/// Differences of one operator: its tasks on all platforms, of all seeds.
struct Cluster {
  double sum = 0;
  std::size_t pairs = 0;
};

// Mean of a's score less b's over all tasks and seeds. The 95 % interval resamples operators with
// all their pairs: those of one operator resemble each other, whatever the platform and the seed.
struct Difference {
  double mean = 0, low = 0, high = 0;
  std::size_t pairs = 0, operators = 0;
};
double mean_of(const std::vector<Cluster>& clusters) {
  Cluster all;
  for (const Cluster& c : clusters) {
    all.sum += c.sum;
    all.pairs += c.pairs;
  }
  return all.sum / static_cast<double>(std::max<std::size_t>(1, all.pairs));
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

Row difference_row(const std::string& name, const Difference& d) {
  const std::string note =
      d.operators < 2
          ? fmt::format("no interval: one operator, {} pairs", d.pairs)
          : fmt::format("95 %: {:+.3f} to {:+.3f} over resampled operators ({}), {} pairs", d.low,
                        d.high, d.operators, d.pairs);
  return {name, d.mean, "", std::nullopt, note};
}

}  // namespace

Corpus bench_corpus(const ModelOptions& options, const std::string& more) {
  std::vector<std::string> paths;
  for (const std::string& folder : {options.pools, more}) {
    if (folder.empty()) continue;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
      if (entry.path().extension() == ".pool") paths.push_back(entry.path().string());
    }
  }
  std::sort(paths.begin(), paths.end());
  Result<Corpus> corpus = read_corpus(paths);
  PRUNERC_CHECK(corpus.ok(), corpus.ok() ? "" : corpus.error().message().c_str());
  return std::move(corpus).value();
}

// "@30%"; nothing for all rows.
std::string volume_suffix(double volume) {
  return volume < 1 ? fmt::format("@{:.0f}%", 100 * volume) : "";
}

std::vector<Row> accuracy_rows(const ModelOptions& options) {
  ThreadPool threads(0);
  const Corpus corpus = bench_corpus(options);
  std::vector<Row> out;
  const std::size_t num_rows = all_rows(corpus).size();
  out.push_back({"corpus_rows", static_cast<double>(num_rows), "rows", std::nullopt,
                 fmt::format("{} pools, {} tasks, {} platforms", corpus.pools.size(),
                             corpus.tasks.size(), corpus.platforms.size())});
  // Models are compared at the largest volume.
  double most = 0;
  for (const double volume : options.volumes) most = std::max(most, volume);
  std::map<RankerKind, std::vector<Run>> full;
  for (const RankerKind kind : wanted(options)) {
    for (const double volume : options.volumes) {
      std::vector<Run> runs;
      for (int i = 0; i < options.seeds; ++i) {
        const int seed = options.first_seed + i;
        runs.push_back(run_once(corpus, kind, volume, seed, options, threads));
        std::fprintf(stderr, "%s at %.0f %%, seed %d: top1 %.3f, top5 %.3f, pairwise %.3f\n",
                     std::string(to_string(kind)).c_str(), 100 * volume, seed,
                     mean_of(runs.back().tasks, &TaskQuality::top1),
                     mean_of(runs.back().tasks, &TaskQuality::top5),
                     mean_of(runs.back().tasks, &TaskQuality::pairwise));
      }
      const bool ours = kind == RankerKind::kPacm && volume == 1;
      const std::string name = std::string(to_string(kind)) + volume_suffix(volume);
      out.push_back(mean_row("top1/" + name, runs, &TaskQuality::top1,
                             ours ? std::optional(0.92) : std::nullopt));
      out.push_back(mean_row("top5/" + name, runs, &TaskQuality::top5,
                             ours ? std::optional(0.98) : std::nullopt));
      out.push_back(mean_row("pairwise/" + name, runs, &TaskQuality::pairwise, std::nullopt));
      out.push_back(sums_row("top1_of_sums/" + name, runs, &TaskQuality::top1));
      out.push_back(sums_row("top5_of_sums/" + name, runs, &TaskQuality::top5));
      if (volume == most) full[kind] = std::move(runs);
    }
  }
  if (!full.contains(RankerKind::kPacm)) return out;
  // Operators by task: all of them, then those of each class.
  std::map<std::string, std::map<int32_t, std::string>> classes;
  for (std::size_t p = 0; p < corpus.pools.size(); ++p) {
    const Pool& pool = corpus.pools[p];
    classes[""][corpus.task[p]] = classes["/" + class_of(pool)][corpus.task[p]] = pool.program;
  }
  for (const auto& [kind, runs] : full) {
    if (kind == RankerKind::kPacm) continue;
    for (const auto& [metric, field] :
         {std::pair{"top1", &TaskQuality::top1}, std::pair{"pairwise", &TaskQuality::pairwise}}) {
      for (const auto& [cls, operators] : classes) {
        const Difference d =
            paired(full[RankerKind::kPacm], runs, field, operators, options.bootstrap);
        if (d.pairs == 0) continue;
        out.push_back(difference_row(
            fmt::format("{}/pacm_less_{}{}{}", metric, to_string(kind), volume_suffix(most), cls),
            d));
      }
    }
  }
  return out;
}

}  // namespace prunerc::bench
