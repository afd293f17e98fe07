#include "costmodel/model/checkpoint.h"
#include "ir/support/check.h"
#include "search/model/dataset.h"
#include "search/model/inputs.h"
#include "search/model/ranker.h"
#include "search/tune/replay.h"
#include "tests/bench/costmodel/rows.h"
#include "tests/bench/draft/curve.h"
#include "tests/bench/draft/over_network.h"
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

/// What a checkpoint was trained on: always other operators than the searched ones.
enum class Known : uint8_t {
  kNothing,
  kOtherMachine,  // as momentum adaptation is published: from one device to another
  kAll,           // this machine as well, as offline models are published, and as a user has it
};

struct Contestant {
  std::string name;
  StrategyKind strategy;
  /// The sketches' heuristic schedules are measured first.
  bool heuristics = false;
  /// What it starts from; none: nothing is given.
  std::optional<NetworkKind> checkpoint = std::nullopt;
  Known known = Known::kNothing;
  /// Ansor's genetic algorithm over this network instead of trees, as ours learns it.
  bool over_ours = false;

  bool is_ours() const { return name.find("pruner") != std::string::npos; }
  /// Whether both had the same before the first trial.
  bool is_equal_start(const Contestant& other) const {
    return heuristics == other.heuristics && known == other.known;
  }
};
const Contestant kContestants[] = {
    {"random", StrategyKind::kRandom},
    {"ansor", StrategyKind::kAnsor},
    {"metaschedule", StrategyKind::kMetaSchedule},
    {"ansor+heuristics", StrategyKind::kAnsor, true},
    {"ansor+checkpoint", StrategyKind::kPruner, true, NetworkKind::kPacm, Known::kAll, true},
    {"tenset-offline", StrategyKind::kTensetOffline, true, NetworkKind::kTensetMlp, Known::kAll},
    {"tlp-offline", StrategyKind::kTlpOffline, true, NetworkKind::kTlp, Known::kAll},
    {"pruner-paper", StrategyKind::kPrunerPaper},
    {"moa-pruner-paper", StrategyKind::kMoaPrunerPaper, false, NetworkKind::kPacmPaper,
     Known::kOtherMachine},
    {"pruner-bare", StrategyKind::kPruner, false, NetworkKind::kPacm},
    {"pruner-untrained", StrategyKind::kPruner, true, NetworkKind::kPacm},
    {"pruner", StrategyKind::kPruner, true, NetworkKind::kPacm, Known::kAll},
    {"moa-pruner", StrategyKind::kMoaPruner, true, NetworkKind::kPacm, Known::kOtherMachine},
    {"pruner-offline", StrategyKind::kPrunerOffline, true, NetworkKind::kPacm, Known::kAll},
};
/// Whom ours is compared with.
constexpr const char* kBaselines[] = {
    "random",           "ansor",          "metaschedule", "ansor+heuristics",
    "ansor+checkpoint", "tenset-offline", "tlp-offline"};
/// Trials of a round, of every strategy: as published for Pruner, so that each learns often enough.
constexpr int kBatch = 10;
/// Where curves are read.
constexpr int64_t kAtTrials[] = {10, 20, 50, 100, 150, 200};
constexpr double kAtSeconds[] = {2, 5, 10, 20, 40, 80};

/// A row of TLP costs twenty of another network's: it is trained on so many drawn ones.
constexpr double kMostTlpRows = 20000;
/// Its pools are the searched ones: nobody's checkpoint counts them as another machine's.
constexpr const char* kSearchedPlatform = "znver4/1";

bool is_searched(const std::string& pool, const ModelOptions& options) {
  return std::find(options.searched.begin(), options.searched.end(), pool) !=
         options.searched.end();
}

/// Checkpoints of networks that never saw the searched operators.
class Checkpoints {
 public:
  Checkpoints(const Corpus& corpus, const ModelOptions& options)
      : corpus_(corpus), options_(options) {
    folder_ = std::filesystem::temp_directory_path() / fmt::format("prunerc-bench-{}", ::getpid());
    std::filesystem::create_directories(folder_);
    std::vector<std::string> held;  // canonical programs, whatever they are called
    for (std::size_t p = 0; p < corpus.pools.size(); ++p) {
      const std::string name = std::filesystem::path(corpus.paths[p]).stem().string();
      if (is_searched(name, options)) held.push_back(corpus.pools[p].program);
    }
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

/// The published speedups (Pruner, ASPLOS'25, arXiv 2402.02361, abstract).
std::optional<double> goal_of(const std::string& name, std::string_view baseline) {
  if (name == "pruner-untrained" && baseline == "ansor+heuristics") return 2.6;
  if (name == "moa-pruner" && baseline == "ansor+heuristics") return 4.82;
  if (name == "pruner-offline" && baseline == "tenset-offline") return 4.75;
  if (name == "pruner-offline" && baseline == "tlp-offline") return 4.05;
  return std::nullopt;
}

TuneOptions options_for(const Contestant& c, const ModelOptions& options, int seed,
                        Checkpoints& checkpoints) {
  TuneOptions out;
  out.strategy = c.strategy;
  out.trials = options.trials;
  out.batch = kBatch;
  out.batches_in_flight = 1;
  out.heuristics = c.heuristics;
  out.seed = static_cast<uint64_t>(seed);
  if (c.checkpoint) out.checkpoint = checkpoints.path(*c.checkpoint, c.known);
  if (c.over_ours) out.make_strategy = ansor_over_network(c.strategy, out.checkpoint);
  return out;
}

/// Every search of one contestant on one operator.
struct Searches {
  double best_ns = 0;         // of the pool
  std::vector<Curve> curves;  // by seed
};
/// By contestant and operator.
using AllSearches = std::map<std::string, std::map<std::string, Searches>>;

// Of the pool's best / best so far, over operators and seeds; 0 before anything ran.
template <typename Position>
Row curve_row(const std::string& name, const std::map<std::string, Searches>& searches,
              Position is_within) {
  std::vector<double> reached;
  for (const auto& [task, of] : searches) {
    for (const Curve& curve : of.curves) {
      double ns = 0;
      for (const CurvePoint& point : curve.points) {
        if (is_within(point)) ns = point.best_ns;
      }
      reached.push_back(ns > 0 ? of.best_ns / ns : 0);
    }
  }
  std::sort(reached.begin(), reached.end());
  const std::size_t n = reached.size();
  return {name,
          median(reached),
          "of best",
          {},
          fmt::format("quartiles {:.3f} to {:.3f}, {} searches", reached[n / 4],
                      reached[n - 1 - n / 4], n)};
}

void add_curves(const AllSearches& all, std::vector<Row>* out) {
  for (const auto& [name, searches] : all) {
    for (const int64_t at : kAtTrials) {
      out->push_back(curve_row(fmt::format("curve/{}@{}", name, at), searches,
                               [&](const CurvePoint& p) { return p.trial <= at; }));
    }
    for (const double at : kAtSeconds) {
      out->push_back(curve_row(fmt::format("curve_s/{}@{:g}", name, at), searches,
                               [&](const CurvePoint& p) { return p.seconds <= at; }));
    }
  }
}

// Ours beside a baseline: what the baseline had spent when it first was as fast as at its end, over
// what ours needs; the same of the baseline's whole budget; to within 1 %.
void add_gains(const Contestant& ours, const Contestant& baseline, const AllSearches& all,
               std::vector<Row>* out) {
  std::vector<Gain> medians;  // by task
  int never = 0, runs = 0;
  for (const auto& [task, theirs] : all.at(baseline.name)) {
    const std::vector<Curve>& mine = all.at(ours.name).at(task).curves;
    std::vector<Gain> gains;
    for (std::size_t i = 0; i < theirs.curves.size(); ++i) {
      gains.push_back(gain_over(theirs.curves[i], mine[i]));
      never += gains.back().ever ? 0 : 1;
      ++runs;
    }
    medians.push_back(median_of(gains));
  }
  const std::string versus = fmt::format("{}_vs_{}", ours.name, baseline.name);
  const std::string note =
      fmt::format("{}; {} of {} searches never",
                  ours.is_equal_start(baseline) ? "equal start" : "unequal start", never, runs);
  const auto row = [&](const char* name, double Gain::*field, std::optional<double> goal) {
    std::vector<double> values = values_of(medians, field);
    std::sort(values.begin(), values.end());
    const std::size_t n = values.size();
    out->push_back({fmt::format("{}/{}", name, versus), geometric_mean(values), "x fewer", goal,
                    fmt::format("geometric mean of {} operators, quartiles {:.2f} to {:.2f}; {}", n,
                                values[n / 4], values[n - 1 - n / 4], note)});
  };
  row("speedup_own", &Gain::own_seconds, goal_of(ours.name, baseline.name));
  row("trials_own", &Gain::own_trials, std::nullopt);
  row("speedup_near", &Gain::near_seconds, std::nullopt);
  row("trials_near", &Gain::near_trials, std::nullopt);
  row("speedup", &Gain::seconds, std::nullopt);
  row("trials", &Gain::trials, std::nullopt);
  row("final", &Gain::final, std::nullopt);
}

std::vector<Contestant> wanted(const ModelOptions& options) {
  std::vector<Contestant> out;
  for (const Contestant& c : kContestants) {
    const bool named = std::find(options.strategies.begin(), options.strategies.end(), c.name) !=
                       options.strategies.end();
    if (options.strategies.empty() || named) out.push_back(c);
  }
  return out;
}

}  // namespace

std::vector<std::string> contestant_names() {
  std::vector<std::string> names;
  for (const Contestant& c : kContestants) names.push_back(c.name);
  return names;
}

std::vector<Row> tuning_rows(const ModelOptions& options) {
  ThreadPool threads(0);
  const Corpus corpus = bench_corpus(options);
  Checkpoints checkpoints(corpus, options);
  const std::vector<Contestant> contestants = wanted(options);
  AllSearches all;
  std::map<std::string, std::vector<double>> overheads;
  for (const NamedPool& pool : read_pools(options.pools)) {
    if (!is_searched(pool.name, options)) continue;
    const ReplayTask task = ReplayTask::make(pool.pool, threads).value();
    // Seed by seed and in turns: the clock holds what searching takes, and that a machine changes.
    for (int seed = 0; seed < options.seeds; ++seed) {
      for (const Contestant& c : contestants) {
        const Result<TuneReport> report =
            replay({&task, 1}, options_for(c, options, seed, checkpoints));
        PRUNERC_CHECK(report.ok(), report.ok() ? "" : report.error().message().c_str());
        Searches& searches = all[c.name][pool.name];
        searches.best_ns = best_of(pool.pool);
        searches.curves.push_back(curve_of(*report));
        overheads[c.name].push_back(overhead_of(searches.curves.back().seconds));
      }
    }
    std::fprintf(stderr, "%s: searched\n", pool.name.c_str());
  }
  std::vector<Row> out;
  add_curves(all, &out);
  for (const Contestant& c : contestants) {
    const std::vector<double>& values = overheads[c.name];
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    out.push_back({"overhead/" + c.name,
                   median(values),
                   "",
                   {},
                   fmt::format("{:.3f} to {:.3f}, of {} searches", *low, *high, values.size()),
                   true});
  }
  for (const char* name : kBaselines) {
    for (const Contestant& ours : contestants) {
      if (!ours.is_ours() || !all.contains(name)) continue;
      const auto baseline = std::find_if(contestants.begin(), contestants.end(),
                                         [&](const Contestant& c) { return c.name == name; });
      add_gains(ours, *baseline, all, &out);
    }
  }
  return out;
}

}  // namespace prunerc::bench
