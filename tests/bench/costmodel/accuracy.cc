#include "ir/support/check.h"
#include "search/model/dataset.h"
#include "search/model/quality.h"
#include "search/model/ranker.h"
#include "tests/bench/costmodel/rows.h"
#include "tests/bench/costmodel/runs.h"
#include "tests/bench/costmodel/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search

namespace {

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
  const auto classes = operators_by_class(corpus);
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
