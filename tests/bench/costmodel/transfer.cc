#include "costmodel/model/trainer.h"
#include "ir/support/check.h"
#include "ir/support/rng.h"
#include "search/model/dataset.h"
#include "search/model/online.h"
#include "search/model/ranker.h"
#include "search/strategy/strategies.h"
#include "search/tune/replay.h"
#include "tests/bench/costmodel/rows.h"
#include "tests/bench/costmodel/train.h"
#include "tests/bench/draft/pools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search
using costmodel::model::Dataset;
using costmodel::model::Model;
using costmodel::model::NetworkKind;

namespace {

/// Part of each class's operators that is judged, another one for each seed; checkpoints know the
/// others.
constexpr double kJudgedShare = 0.5;
/// Records of one task that arrive together, as a round of the published search measures them; so many
/// rounds of each judged task, one task after the other.
constexpr std::size_t kArriving = 10;
constexpr std::size_t kUpdates = 8;
/// Where searches are looked at.
constexpr int64_t kTrials[] = {10, 20, 40, 80, 150};
/// Of every method: a gain is known when its batch ends.
constexpr int kBatch = 10;
/// Searched pools of one seed.
constexpr std::size_t kMostSearched = 8;

enum class From : uint8_t { kNothing, kCheckpoint };

/// How a network meets a platform. In searches the published networks verify what the published
/// analyzer drafts.
struct Method {
  const char* name;
  NetworkKind network;
  OnlineKind online;
  From from;

  StrategyKind strategy() const {
    return network == NetworkKind::kPacmPaper ? StrategyKind::kPrunerPaper : StrategyKind::kPruner;
  }
};
constexpr Method kMethods[] = {
    {"frozen", NetworkKind::kPacm, OnlineKind::kFrozen, From::kCheckpoint},
    {"scratch", NetworkKind::kPacm, OnlineKind::kScratch, From::kNothing},
    {"warm", NetworkKind::kPacm, OnlineKind::kWarm, From::kCheckpoint},
    {"moa", NetworkKind::kPacm, OnlineKind::kMoa, From::kCheckpoint},
    {"scratch-paper", NetworkKind::kPacmPaper, OnlineKind::kScratch, From::kNothing},
    {"fine-tune-published", NetworkKind::kPacmPaper, OnlineKind::kFineTune, From::kCheckpoint},
    {"moa-paper", NetworkKind::kPacmPaper, OnlineKind::kMoaPaper, From::kCheckpoint},
};

using Checkpoints = std::map<NetworkKind, Model>;

OnlineModel start(const Method& method, const Checkpoints& checkpoints, uint64_t seed) {
  const Recipe recipe = recipe_of(method.network);
  Model model = method.from == From::kCheckpoint
                    ? checkpoints.at(method.network)
                    : costmodel::model::make_model(recipe.network, recipe.members, seed);
  if (method.network == NetworkKind::kPacmPaper) {
    model = with_statistics(std::move(model), costmodel::nn::Statistics::kRunning);
  }
  return OnlineModel(std::move(model), online_options(method.online, recipe.network, seed));
}

/// From one platform to another, and which operators are judged there.
struct Fold {
  std::set<int32_t> known;            // tasks of the source: what checkpoints are trained on
  std::set<int32_t> judged;           // tasks of the target
  std::vector<std::size_t> searched;  // pools
};

// In turns one of each class, in the order of the pools.
std::vector<std::size_t> some_of_each_class(const Corpus& corpus,
                                            const std::vector<std::size_t>& pools) {
  std::map<std::string, int> seen;
  std::vector<std::pair<int, std::size_t>> order;
  for (const std::size_t p : pools) order.emplace_back(seen[class_of(corpus.pools[p])]++, p);
  std::sort(order.begin(), order.end());
  std::vector<std::size_t> out;
  for (const auto& [turn, pool] : order) {
    if (out.size() < kMostSearched) out.push_back(pool);
  }
  return out;
}

std::vector<std::size_t> pools_of(const Corpus& corpus, int32_t platform) {
  std::vector<std::size_t> out;
  for (std::size_t p = 0; p < corpus.pools.size(); ++p) {
    if (corpus.platform[p] == platform) out.push_back(p);
  }
  return out;
}

std::set<std::string> programs_of(const Corpus& corpus, const std::vector<std::size_t>& pools) {
  std::set<std::string> out;
  for (const std::size_t p : pools) out.insert(corpus.pools[p].program);
  return out;
}

// Only operators that both platforms have: judged and known ones are equal for both directions.
Fold fold_of(const Corpus& corpus, int32_t source, int32_t target, uint64_t seed) {
  const std::set<std::string> on_source = programs_of(corpus, pools_of(corpus, source));
  const std::set<std::string> on_target = programs_of(corpus, pools_of(corpus, target));
  std::vector<CorpusRow> rows;
  for (const CorpusRow& row : all_rows(corpus)) {
    const auto p = static_cast<std::size_t>(row.pool);
    if (corpus.platform[p] == target && on_source.contains(corpus.pools[p].program)) {
      rows.push_back(row);
    }
  }
  std::set<std::size_t> judged;
  for (const CorpusRow& row :
       split_rows(corpus, rows, SplitKind::kByTask, kJudgedShare, {}, seed).test) {
    judged.insert(static_cast<std::size_t>(row.pool));
  }
  Fold out;
  out.searched = some_of_each_class(corpus, {judged.begin(), judged.end()});
  const std::set<std::string> held = programs_of(corpus, {judged.begin(), judged.end()});
  for (const std::size_t p : judged) out.judged.insert(corpus.task[p]);
  for (const std::size_t p : pools_of(corpus, source)) {
    const std::string& program = corpus.pools[p].program;
    if (on_target.contains(program) && !held.contains(program)) out.known.insert(corpus.task[p]);
  }
  return out;
}

/// Programs of the judged tasks, each task's in a drawn order: what arrives, and what is asked of.
struct Stream {
  std::vector<std::vector<std::vector<int>>> arriving{kUpdates};  // by update, by task
  std::vector<int> test;
};
Stream stream_of(const Dataset& judged, uint64_t seed) {
  Stream out;
  Rng rng(seed, 3);
  for (std::vector<int>& programs : groups_of(judged)) {
    for (std::size_t i = programs.size(); i > 1; --i) {
      std::swap(programs[i - 1], programs[rng.below(i)]);
    }
    for (std::vector<std::vector<int>>& update : out.arriving) update.emplace_back();
    for (std::size_t i = 0; i < programs.size(); ++i) {
      const std::size_t update = i / kArriving;
      (update < kUpdates ? out.arriving[update].back() : out.test).push_back(programs[i]);
    }
  }
  return out;
}

// By "top1/METHOD@RECORDS" and so on, over seeds.
using Spreads = std::map<std::string, Spread>;

void rank(const Method& method, const Dataset& judged, const Checkpoints& checkpoints,
          uint64_t seed, ThreadPool& threads, const std::string& prefix, Spreads* out) {
  const Stream stream = stream_of(judged, seed);
  const Dataset test = select(judged, stream.test);
  OnlineModel model = start(method, checkpoints, seed);
  // What begins anew each time need not be trained before it is asked.
  const bool forgets =
      method.online == OnlineKind::kScratch || method.online == OnlineKind::kFineTune;
  std::vector<int> seen;
  for (std::size_t update = 0; update <= kUpdates; ++update) {
    for (std::size_t task = 0; update > 0 && task < stream.arriving[update - 1].size(); ++task) {
      const std::vector<int>& more = stream.arriving[update - 1][task];
      seen.insert(seen.end(), more.begin(), more.end());
      if (forgets && task + 1 < stream.arriving[update - 1].size()) continue;
      model.records() = select(judged, seen);
      model.update(threads);
    }
    if (!model.is_trained()) continue;
    const TaskQuality q = judge(model.model(), test, threads);
    const std::string row = fmt::format("{}/{}@{}", prefix, method.name, update * kArriving);
    (*out)["top1/" + row].values.push_back(q.top1);
    (*out)["pairwise/" + row].values.push_back(q.pairwise);
  }
}

// Best time of the pool / best so far, after each of kTrials.
std::vector<double> search_with(const Method& method, const ReplayTask& task, double best_ns,
                                const Checkpoints& checkpoints, uint64_t seed) {
  TuneOptions tuning;
  tuning.strategy = method.strategy();
  tuning.trials = *std::prev(std::end(kTrials));
  tuning.batch = kBatch;
  tuning.seed = seed;
  tuning.num_threads = 1;  // searches run beside each other
  tuning.make_strategy = [&](const StrategyContext& context) {
    StrategyContext own = context;
    own.network = std::make_shared<OnlineModel>(start(method, checkpoints, seed));
    return make_strategy(method.strategy(), own);
  };
  const Result<TuneReport> report = replay({&task, 1}, tuning);
  PRUNERC_CHECK(report.ok(), report.ok() ? "" : report.error().message().c_str());
  std::vector<double> out;
  for (const int64_t trials : kTrials) {
    double found_ns = 0;
    for (const CurvePoint& point : report->tasks.front().curve) {
      if (point.trial <= trials) found_ns = point.best_ns;
    }
    out.push_back(found_ns > 0 ? best_ns / found_ns : 0);
  }
  return out;
}

class Bench {
 public:
  explicit Bench(const ModelOptions& options) : options_(options), corpus_(bench_corpus(options)) {}

  // Both directions between two platforms.
  void run(const std::string& one, const std::string& other) {
    const int32_t a = platform_number(one), b = platform_number(other);
    std::vector<CorpusRow> rows;
    for (const CorpusRow& row : all_rows(corpus_)) {
      const int32_t platform = corpus_.platform[static_cast<std::size_t>(row.pool)];
      if (platform == a || platform == b) rows.push_back(row);
    }
    for (const NetworkKind kind : {NetworkKind::kPacm, NetworkKind::kPacmPaper}) {
      data_[kind] = make_dataset(corpus_, rows, recipe_of(kind).network, threads_).value();
    }
    for (int i = 0; i < options_.seeds; ++i) {
      const auto seed = static_cast<uint64_t>(options_.first_seed + i);
      run_once(fmt::format("{}_to_{}", one, other), fold_of(corpus_, a, b, seed), seed);
      run_once(fmt::format("{}_to_{}", other, one), fold_of(corpus_, b, a, seed), seed);
    }
  }

  std::vector<Row> rows() const {
    std::vector<Row> out;
    for (const auto& [name, spread] : spreads_) {
      const std::string note = name.starts_with("tuned/")
                                   ? fmt::format("{}; {} tasks a seed", spread.range(), searched_)
                                   : spread.range();
      out.push_back({name, spread.mean(), "", std::nullopt, note});
    }
    return out;
  }

 private:
  int32_t platform_number(const std::string& part) const {
    for (std::size_t i = 0; i < corpus_.platforms.size(); ++i) {
      if (corpus_.platforms[i].ends_with(part)) return static_cast<int32_t>(i);
    }
    PRUNERC_CHECK(false, "pools of both platforms");
    return -1;
  }

  void prepare(std::size_t pool) {
    std::unique_ptr<ReplayTask>& task = replayed_[pool];
    if (task != nullptr) return;
    task = std::make_unique<ReplayTask>(ReplayTask::make(corpus_.pools[pool], threads_).value());
  }

  bool is_wanted(const Method& method) const {
    const std::vector<std::string>& named = options_.models;
    return named.empty() || std::find(named.begin(), named.end(), method.name) != named.end();
  }

  void run_once(const std::string& way, const Fold& fold, uint64_t seed) {
    Checkpoints checkpoints;
    for (const auto& [kind, data] : data_) {
      const bool is_used =
          std::any_of(std::begin(kMethods), std::end(kMethods),
                      [&](const Method& m) { return m.network == kind && is_wanted(m); });
      if (!is_used) continue;
      checkpoints[kind] = train_network(of_tasks(data, fold.known), kind, seed, options_, threads_);
    }
    std::fprintf(stderr, "%s, seed %d: %zu tasks known, %zu judged\n", way.c_str(),
                 static_cast<int>(seed), fold.known.size(), fold.judged.size());
    for (const Method& method : kMethods) {
      if (!is_wanted(method)) continue;
      rank(method, of_tasks(data_[method.network], fold.judged), checkpoints, seed, threads_, way,
           &spreads_);
      tune(method, fold, checkpoints, seed, way);
      const std::string row = fmt::format("{}/{}@", way, method.name);
      const auto last = [&](const std::string& name) { return spreads_[name].values.back(); };
      std::fprintf(stderr, "%s: top1 %.3f, tuned %.3f and %.3f\n", method.name,
                   last(fmt::format("top1/{}{}", row, kArriving * kUpdates)),
                   last(fmt::format("tuned/{}{}", row, kTrials[1])),
                   last(fmt::format("tuned/{}{}", row, *std::prev(std::end(kTrials)))));
    }
  }

  void tune(const Method& method, const Fold& fold, const Checkpoints& checkpoints, uint64_t seed,
            const std::string& way) {
    for (const std::size_t pool : fold.searched) prepare(pool);
    const auto found = threads_.map<std::vector<double>>(fold.searched.size(), [&](std::size_t i) {
      const std::size_t pool = fold.searched[i];
      return search_with(method, *replayed_.at(pool), best_of(corpus_.pools[pool]), checkpoints,
                         seed);
    });
    std::vector<double> sums(std::size(kTrials));
    for (const std::vector<double>& qualities : found) {
      for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += qualities[i];
    }
    searched_ = fold.searched.size();
    for (std::size_t i = 0; i < sums.size(); ++i) {
      spreads_[fmt::format("tuned/{}/{}@{}", way, method.name, kTrials[i])].values.push_back(
          sums[i] / static_cast<double>(fold.searched.size()));
    }
  }

  const ModelOptions& options_;
  ThreadPool threads_{0};
  const Corpus corpus_;
  std::map<NetworkKind, Dataset> data_;  // of both platforms
  std::map<std::size_t, std::unique_ptr<ReplayTask>> replayed_;
  std::size_t searched_ = 0;
  Spreads spreads_;
};

}  // namespace

std::vector<Row> transfer_rows(const ModelOptions& options) {
  Bench bench(options);
  bench.run("x86-64-v3/1", "znver5/1");
  return bench.rows();
}

}  // namespace prunerc::bench
