#include "costmodel/model/checkpoint.h"
#include "ir/support/check.h"
#include "search/model/dataset.h"
#include "search/model/inputs.h"
#include "search/model/ranker.h"
#include "search/tune/replay.h"
#include "tests/bench/costmodel/rows.h"
#include "tests/bench/draft/curve.h"
#include "tests/bench/draft/pools.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>
#include <optional>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search
using costmodel::model::NetworkKind;

namespace {

/// Searched pools: eight operators of several classes.
constexpr const char* kTuned[] = {"gemm_256", "gemm_bias_relu", "gemm_odd",    "conv_3x3",
                                  "conv_1x1", "depthwise_3x3",  "softmax_512", "reduce_columns"};

/// What a checkpoint was trained on: always other operators than the searched ones.
enum class Known : uint8_t {
  kNothing,
  kOtherMachine,  // as momentum adaptation is published: from one device to another
  kAll,           // this machine as well, as offline models are published, and as a user has it
};

struct Contestant {
  std::string name;
  StrategyKind strategy;
  /// What it starts from; none: nothing is given.
  std::optional<NetworkKind> checkpoint;
  Known known = Known::kNothing;
};
const Contestant kContestants[] = {
    {"ansor", StrategyKind::kAnsor, {}},
    {"tenset-offline", StrategyKind::kTensetOffline, NetworkKind::kTensetMlp, Known::kAll},
    {"tlp-offline", StrategyKind::kTlpOffline, NetworkKind::kTlp, Known::kAll},
    {"pruner-xgb", StrategyKind::kPrunerTrees, {}},
    {"pruner-untrained", StrategyKind::kPruner, NetworkKind::kPacm},
    {"pruner", StrategyKind::kPruner, NetworkKind::kPacm, Known::kAll},
    {"moa-pruner", StrategyKind::kMoaPruner, NetworkKind::kPacm, Known::kOtherMachine},
    {"pruner-offline", StrategyKind::kPrunerOffline, NetworkKind::kPacm, Known::kAll},
    {"pruner-paper", StrategyKind::kPrunerPaper, {}},
    {"moa-pruner-paper", StrategyKind::kMoaPrunerPaper, NetworkKind::kPacmPaper,
     Known::kOtherMachine},
};
/// A row of TLP costs twenty of another network's: it is trained on so many drawn ones.
constexpr double kMostTlpRows = 20000;
/// Its pools are the searched ones: nobody's checkpoint counts them as another machine's.
constexpr const char* kSearchedPlatform = "znver4/1";

/// Checkpoints of networks that never saw the searched operators.
class Checkpoints {
 public:
  Checkpoints(const Corpus& corpus, const ModelOptions& options)
      : corpus_(corpus), options_(options) {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("prunerc-bench-{}", ::getpid());
    std::filesystem::create_directories(folder_);
    const std::vector<std::string> held(std::begin(kTuned), std::end(kTuned));
    all_ = split_rows(corpus, all_rows(corpus), SplitKind::kByTask, 0, held, 1).train;
    for (const CorpusRow& row : all_) {
      const auto platform = corpus.platform[static_cast<std::size_t>(row.pool)];
      const std::string& name = corpus.platforms[static_cast<std::size_t>(platform)];
      if (name.find(kSearchedPlatform) == std::string::npos) others_.push_back(row);
    }
  }
  ~Checkpoints() {
    std::error_code code;
    std::filesystem::remove_all(folder_, code);
  }

  std::string path(NetworkKind kind, Known known) {
    const std::string name = fmt::format("{}-{}.model", to_string(kind), static_cast<int>(known));
    const std::string path = (folder_ / name).string();
    if (std::filesystem::exists(path)) return path;
    Recipe recipe = recipe_of(kind);
    if (options_.epochs > 0) recipe.train.epochs = options_.epochs;
    auto model = costmodel::model::make_model(recipe.network, recipe.members, 1);
    if (known != Known::kNothing) {
      std::vector<CorpusRow> rows = known == Known::kAll ? all_ : others_;
      if (kind == NetworkKind::kTlp && static_cast<double>(rows.size()) > kMostTlpRows) {
        const double part = kMostTlpRows / static_cast<double>(rows.size());
        rows = search::prune_rows(corpus_, rows, PruneKind::kRandom, part, 1);
      }
      const auto data = make_dataset(corpus_, rows, recipe.network, threads_).value();
      PRUNERC_CHECK(costmodel::model::train(data, recipe.train, &threads_, &model).ok(), "trains");
      std::fprintf(stderr, "trained %s on %d programs\n", name.c_str(), data.size());
    }
    model.feature_set = feature_set(kind);
    PRUNERC_CHECK(costmodel::model::write_checkpoint(model, "bench", path).ok(), "is written");
    return path;
  }

 private:
  const Corpus& corpus_;
  const ModelOptions& options_;
  ThreadPool threads_{0};
  std::filesystem::path folder_;
  std::vector<CorpusRow> all_, others_;
};

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += v;
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::log(v);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

/// The published speedups (Pruner, ASPLOS'25, arXiv 2402.02361, abstract).
std::optional<double> goal_of(const std::string& name, std::string_view baseline) {
  if (name == "pruner" && baseline == "ansor") return 2.6;
  if (name == "moa-pruner" && baseline == "ansor") return 4.82;
  if (name == "pruner-offline" && baseline == "tenset-offline") return 4.75;
  if (name == "pruner-offline" && baseline == "tlp-offline") return 4.05;
  return std::nullopt;
}

}  // namespace

std::vector<Row> tuning_rows(const ModelOptions& options) {
  ThreadPool threads(0);
  const Corpus corpus = bench_corpus(options);
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
        if (c.checkpoint) tuning.checkpoint = checkpoints.path(*c.checkpoint, c.known);
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
      const std::string versus = fmt::format("{}_vs_{}", c.name, baseline);
      std::vector<Gain> medians;  // by task
      int never = 0, runs = 0;
      for (const auto& [task, theirs] : curves[baseline]) {
        std::vector<Gain> gains;
        for (std::size_t i = 0; i < theirs.size(); ++i) {
          gains.push_back(gain_over(theirs[i], curves[c.name][task][i]));
          never += gains.back().ever ? 0 : 1;
          ++runs;
        }
        medians.push_back(median_of(gains));
        out.push_back({fmt::format("speedup/{}/{}", versus, task),
                       medians.back().seconds,
                       "x fewer s",
                       {},
                       fmt::format("{:.2f} x fewer trials", medians.back().trials)});
      }
      const auto of = [&](double Gain::*field) { return values_of(medians, field); };
      const std::vector<double> trials = of(&Gain::trials), seconds = of(&Gain::seconds);
      const std::string note =
          fmt::format("{} tasks, {} of {} runs never", medians.size(), never, runs);
      out.push_back({"speedup/" + versus, mean_of(seconds), "x fewer s", goal_of(c.name, baseline),
                     fmt::format("mean; geometric {:.2f}; {}", geometric_mean(seconds), note)});
      out.push_back({"trials/" + versus, mean_of(trials), "x fewer", goal_of(c.name, baseline),
                     fmt::format("mean; geometric {:.2f}; {}", geometric_mean(trials), note)});
      out.push_back({"speedup_own/" + versus,
                     geometric_mean(of(&Gain::own_seconds)),
                     "x fewer s",
                     {},
                     "geometric mean, " + note});
      out.push_back({"trials_own/" + versus,
                     geometric_mean(of(&Gain::own_trials)),
                     "x fewer",
                     {},
                     "geometric mean, " + note});
      out.push_back({"speedup_near/" + versus,
                     geometric_mean(of(&Gain::near_seconds)),
                     "x fewer s",
                     {},
                     "geometric mean, to within 1 % of that end"});
      out.push_back({"trials_near/" + versus,
                     geometric_mean(of(&Gain::near_trials)),
                     "x fewer",
                     {},
                     "geometric mean, to within 1 % of that end"});
      out.push_back({"final/" + versus, geometric_mean(of(&Gain::final)), "x faster", 1.0,
                     "geometric mean, " + note});
    }
  }
  return out;
}

}  // namespace prunerc::bench
