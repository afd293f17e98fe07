#include "costmodel/model/checkpoint.h"
#include "ir/support/check.h"
#include "search/learn/inputs.h"
#include "search/learn/ranker.h"
#include "search/replay.h"
#include "tests/bench/costmodel_rows.h"
#include "tests/bench/draft_curve.h"
#include "tests/bench/draft_pools.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search
using costmodel::model::NetworkKind;

namespace {

/// Searched pools: eight operators of several classes, of the machine that the checkpoints do not
/// know.
constexpr const char* kTuned[] = {"gemm_256", "gemm_bias_relu", "gemm_odd",    "conv_3x3",
                                  "conv_1x1", "depthwise_3x3",  "softmax_512", "reduce_columns"};

struct Contestant {
  std::string name;
  StrategyKind strategy;
  /// What it starts from; none: nothing is given.
  std::optional<NetworkKind> checkpoint;
  bool trained = true;
};
const Contestant kContestants[] = {
    {"ansor", StrategyKind::kAnsor, {}},
    {"tenset-offline", StrategyKind::kTensetOffline, NetworkKind::kTensetMlp},
    {"tlp-offline", StrategyKind::kTlpOffline, NetworkKind::kTlp},
    {"pruner-xgb", StrategyKind::kPrunerTrees, {}},
    {"pruner-untrained", StrategyKind::kPruner, NetworkKind::kPacm, false},
    {"pruner", StrategyKind::kPruner, NetworkKind::kPacm},
    {"moa-pruner", StrategyKind::kMoaPruner, NetworkKind::kPacm},
    {"pruner-offline", StrategyKind::kPrunerOffline, NetworkKind::kPacm},
    {"pruner-paper", StrategyKind::kPrunerPaper, {}},
    {"moa-pruner-paper", StrategyKind::kMoaPrunerPaper, NetworkKind::kPacmPaper},
};

/// Checkpoints of networks that never saw the tuned operators, on any machine.
class Checkpoints {
 public:
  Checkpoints(const Corpus& corpus, const ModelOptions& options)
      : corpus_(corpus), options_(options) {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("prunerc-bench-{}", ::getpid());
    std::filesystem::create_directories(folder_);
    const std::vector<std::string> held(std::begin(kTuned), std::end(kTuned));
    known_ = split_rows(corpus, all_rows(corpus), SplitKind::kByTask, 0, held, 1).train;
  }
  ~Checkpoints() {
    std::error_code code;
    std::filesystem::remove_all(folder_, code);
  }

  std::string path(NetworkKind kind, bool trained) {
    const std::string name = fmt::format("{}-{}.model", to_string(kind), trained);
    const std::string path = (folder_ / name).string();
    if (std::filesystem::exists(path)) return path;
    Recipe recipe = recipe_of(kind);
    if (options_.epochs > 0) recipe.train.epochs = options_.epochs;
    auto model = costmodel::model::make_model(recipe.network, recipe.members, 1);
    if (trained) {
      const auto data = make_dataset(corpus_, known_, recipe.network, threads_).value();
      PRUNERC_CHECK(costmodel::model::train(data, recipe.train, &threads_, &model).ok(), "trains");
      std::fprintf(stderr, "trained %s on %d programs\n", name.c_str(), data.size());
    }
    model.feature_set = kFeatureSet;
    PRUNERC_CHECK(costmodel::model::write_checkpoint(model, "bench", path).ok(), "is written");
    return path;
  }

 private:
  const Corpus& corpus_;
  const ModelOptions& options_;
  ThreadPool threads_{0};
  std::filesystem::path folder_;
  std::vector<CorpusRow> known_;
};

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::log(v);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

}  // namespace

std::vector<Row> tuning_rows(const ModelOptions& options) {
  ThreadPool threads(0);
  ModelOptions known = options;
  known.pools = options.checkpoint_pools;
  const Corpus corpus = bench_corpus(known);
  Checkpoints checkpoints(corpus, options);
  std::vector<Contestant> contestants;
  for (const Contestant& c : kContestants) {
    const bool named = std::find(options.strategies.begin(), options.strategies.end(), c.name) !=
                       options.strategies.end();
    if (options.strategies.empty() || named) contestants.push_back(c);
  }
  // By contestant and task, over seeds.
  std::map<std::string, std::map<std::string, std::vector<Curve>>> curves;
  std::vector<Row> out;
  for (const NamedPool& pool : read_pools(options.pools)) {
    if (std::find(std::begin(kTuned), std::end(kTuned), pool.name) == std::end(kTuned)) continue;
    const ReplayTask task = ReplayTask::make(pool.pool, threads).value();
    const int64_t trials = std::min(options.trials, static_cast<int64_t>(task.rows.size()) / 2);
    for (const Contestant& c : contestants) {
      std::vector<double> quality, overhead;
      for (int seed = 0; seed < options.seeds; ++seed) {
        TuneOptions tuning;
        tuning.strategy = c.strategy;
        tuning.trials = trials;
        tuning.seed = static_cast<uint64_t>(seed);
        if (c.checkpoint) tuning.checkpoint = checkpoints.path(*c.checkpoint, c.trained);
        const Result<TuneReport> report = replay({&task, 1}, tuning);
        PRUNERC_CHECK(report.ok(), report.ok() ? "" : report.error().message().c_str());
        const Curve curve = curve_of(*report);
        quality.push_back(best_of(pool.pool) / curve.final_ns);
        overhead.push_back(overhead_of(curve.seconds));
        curves[c.name][pool.name].push_back(curve);
      }
      const Curve& last = curves[c.name][pool.name].back();
      out.push_back({fmt::format("final_latency/{}/{}", c.name, pool.name),
                     median(quality),
                     "of best",
                     {},
                     fmt::format("{} trials, {} seeds", trials, options.seeds)});
      out.push_back({fmt::format("overhead/{}/{}", c.name, pool.name),
                     median(overhead),
                     "",
                     {},
                     "last seed: " + to_text(last.seconds),
                     true});
      std::fprintf(stderr, "%s on %s: final %.4f, overhead %.2f\n", c.name.c_str(),
                   pool.name.c_str(), median(quality), median(overhead));
    }
  }
  for (const char* baseline : {"ansor", "tenset-offline", "tlp-offline"}) {
    if (!curves.contains(baseline)) continue;
    for (const Contestant& c : contestants) {
      if (c.name.find("pruner") == std::string::npos) continue;
      std::vector<double> trials, seconds, final;
      int never = 0;
      for (const auto& [task, theirs] : curves[baseline]) {
        std::vector<double> fewer_trials, fewer_seconds, lower;
        for (std::size_t s = 0; s < theirs.size(); ++s) {
          const Curve& mine = curves[c.name][task][s];
          const Reached goal = reach(theirs[s], theirs[s].final_ns);
          const Reached got = reach(mine, theirs[s].final_ns);
          never += got.ever ? 0 : 1;
          // A run that never got there counts with its budget, and never as a gain.
          const double most = got.ever ? std::numeric_limits<double>::infinity() : 1;
          fewer_trials.push_back(std::min(most, goal.trials / std::max(1.0, got.trials)));
          fewer_seconds.push_back(std::min(most, goal.seconds / std::max(1e-9, got.seconds)));
          lower.push_back(theirs[s].final_ns / mine.final_ns);
        }
        trials.push_back(median(fewer_trials));
        seconds.push_back(median(fewer_seconds));
        final.push_back(median(lower));
        out.push_back({fmt::format("speedup/{}_vs_{}/{}", c.name, baseline, task),
                       seconds.back(),
                       "x fewer s",
                       {},
                       fmt::format("{:.2f} x fewer trials", trials.back())});
      }
      const std::string note =
          fmt::format("geometric mean of {} tasks, {} runs never", trials.size(), never);
      out.push_back({fmt::format("speedup/{}_vs_{}", c.name, baseline),
                     geometric_mean(seconds),
                     "x fewer s",
                     {},
                     note});
      out.push_back({fmt::format("trials/{}_vs_{}", c.name, baseline),
                     geometric_mean(trials),
                     "x fewer",
                     {},
                     note});
      out.push_back({fmt::format("final/{}_vs_{}", c.name, baseline),
                     geometric_mean(final),
                     "x faster",
                     {},
                     note});
    }
  }
  return out;
}

}  // namespace prunerc::bench
