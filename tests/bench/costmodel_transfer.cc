#include "ir/support/check.h"
#include "ir/support/rng.h"
#include "search/learn/online.h"
#include "search/learn/quality.h"
#include "search/learn/ranker.h"
#include "tests/bench/costmodel_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <numeric>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search
using costmodel::model::Dataset;
using costmodel::model::Model;

namespace {

/// Shares of the training rows that pruning keeps.
constexpr double kKept[] = {0.7, 0.55, 0.4, 0.25};
/// Records of each task that arrive between two updates, and updates.
constexpr std::size_t kArriving = 8;
constexpr int kUpdates = 8;

struct Mean {
  std::vector<double> values;
  double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) /
           static_cast<double>(std::max<std::size_t>(1, values.size()));
  }
  std::string range() const {
    const auto [low, high] = std::minmax_element(values.begin(), values.end());
    return values.empty() ? "" : fmt::format("{:.3f} to {:.3f}", *low, *high);
  }
};

Model train_on(const Dataset& data, RankerKind kind, uint64_t seed, const ModelOptions& options,
               ThreadPool& threads) {
  Recipe recipe = recipe_of(*network_of(kind));
  if (options.epochs > 0) recipe.train.epochs = options.epochs;
  recipe.train.seed = seed;
  Model model = costmodel::model::make_model(recipe.network, recipe.members, seed);
  const auto trained = costmodel::model::train(data, recipe.train, &threads, &model);
  PRUNERC_CHECK(trained.ok(), trained.ok() ? "" : trained.error().message().c_str());
  return model;
}

TaskQuality quality(const Model& model, const Dataset& test, ThreadPool& threads) {
  return mean_quality(quality_of(test, make_ranker(model)->scores(test, threads)));
}

// Rows of the platform, each pool's in a drawn order: what arrives, and what is asked of.
struct Stream {
  std::vector<std::vector<CorpusRow>> arriving;  // by update
  std::vector<CorpusRow> test;
};
Stream stream_of(const Corpus& corpus, int32_t platform, uint64_t seed) {
  Stream out;
  out.arriving.resize(kUpdates);
  std::map<int, std::vector<CorpusRow>> by_pool;
  for (const CorpusRow& row : all_rows(corpus)) {
    if (corpus.platform[static_cast<std::size_t>(row.pool)] == platform)
      by_pool[row.pool].push_back(row);
  }
  Rng rng(seed, 3);
  for (auto& [pool, rows] : by_pool) {
    for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[rng.below(i)]);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const std::size_t update = i / kArriving;
      (update < kUpdates ? out.arriving[update] : out.test).push_back(rows[i]);
    }
  }
  return out;
}

struct Method {
  const char* name;
  RankerKind model;
  OnlineKind online;
  bool from_checkpoint;
};
constexpr Method kMethods[] = {
    {"frozen", RankerKind::kPacm, OnlineKind::kFrozen, true},
    {"scratch", RankerKind::kPacm, OnlineKind::kScratch, false},
    {"fine-tune", RankerKind::kPacm, OnlineKind::kWarm, true},
    {"moa", RankerKind::kPacm, OnlineKind::kMoa, true},
    {"scratch-paper", RankerKind::kPacmPaper, OnlineKind::kScratch, false},
    {"moa-paper", RankerKind::kPacmPaper, OnlineKind::kMoaPaper, true},
};

int32_t platform_number(const Corpus& corpus, const std::string& part) {
  for (std::size_t i = 0; i < corpus.platforms.size(); ++i) {
    if (corpus.platforms[i].find(part) != std::string::npos) return static_cast<int32_t>(i);
  }
  return -1;
}

}  // namespace

std::vector<Row> prune_rows(const ModelOptions& options) {
  ThreadPool threads(0);
  const Corpus corpus = bench_corpus(options);
  const RankerKind kind = RankerKind::kPacm;
  const auto inputs = inputs_of(kind);
  std::map<std::string, Mean> pairwise, top1, removed;
  for (int i = 0; i < options.seeds; ++i) {
    const int seed = options.first_seed + i;
    const auto s = static_cast<uint64_t>(seed);
    const Split split =
        split_rows(corpus, all_rows(corpus), SplitKind::kByTask, options.test_share, {}, s);
    const Dataset test = make_dataset(corpus, split.test, inputs, threads).value();
    const auto run = [&](const std::string& name, const std::vector<CorpusRow>& rows) {
      const Dataset train = make_dataset(corpus, rows, inputs, threads).value();
      const TaskQuality q = quality(train_on(train, kind, s, options, threads), test, threads);
      pairwise[name].values.push_back(q.pairwise);
      top1[name].values.push_back(q.top1);
      removed[name].values.push_back(1 - static_cast<double>(rows.size()) /
                                             static_cast<double>(split.train.size()));
      std::fprintf(stderr, "%s seed %d: pairwise %.4f, top1 %.3f\n", name.c_str(), seed, q.pairwise,
                   q.top1);
    };
    run("all", split.train);
    for (const double keep : kKept) {
      for (const PruneKind prune : {PruneKind::kRandom, PruneKind::kQuantile, PruneKind::kClass}) {
        run(fmt::format("{}@{:.0f}%", to_string(prune), 100 * keep),
            search::prune_rows(corpus, split.train, prune, keep, s));
      }
    }
  }
  std::vector<Row> out;
  double most = 0;
  for (const auto& [name, values] : pairwise) {
    out.push_back({"pairwise_pruned/" + name, values.mean(), "", std::nullopt, values.range()});
    out.push_back({"top1_pruned/" + name, top1[name].mean(), "", std::nullopt, top1[name].range()});
    if (values.mean() >= pairwise["all"].mean()) most = std::max(most, removed[name].mean());
  }
  out.push_back({"pruned_fraction", most, "", 0.45,
                 "removed at no loss of mean pairwise accuracy, by the best of the kinds"});
  return out;
}

std::vector<Row> transfer_rows(const ModelOptions& options) {
  ThreadPool threads(0);
  const Corpus corpus = bench_corpus(options);
  const std::pair<const char*, const char*> ways[] = {{"x86-64-v3/1", "znver5/1"},
                                                      {"znver5/1", "x86-64-v3/1"}};
  std::vector<Row> out;
  for (const auto& [from, to] : ways) {
    const int32_t source = platform_number(corpus, from), target = platform_number(corpus, to);
    PRUNERC_CHECK(source >= 0 && target >= 0, "pools of both platforms");
    std::map<std::string, std::map<int, Mean>> top1, pairwise;
    for (int i = 0; i < options.seeds; ++i) {
      const int seed = options.first_seed + i;
      const auto s = static_cast<uint64_t>(seed);
      const Stream stream = stream_of(corpus, target, s);
      std::vector<CorpusRow> known;
      for (const CorpusRow& row : all_rows(corpus)) {
        if (corpus.platform[static_cast<std::size_t>(row.pool)] == source) known.push_back(row);
      }
      std::map<RankerKind, Model> checkpoints;
      for (const RankerKind kind : {RankerKind::kPacm, RankerKind::kPacmPaper}) {
        checkpoints[kind] = train_on(make_dataset(corpus, known, inputs_of(kind), threads).value(),
                                     kind, s, options, threads);
      }
      for (const Method& method : kMethods) {
        const Dataset test =
            make_dataset(corpus, stream.test, inputs_of(method.model), threads).value();
        const Recipe recipe = recipe_of(*network_of(method.model));
        OnlineModel model(method.from_checkpoint
                              ? checkpoints[method.model]
                              : costmodel::model::make_model(recipe.network, recipe.members, s),
                          online_options(method.online, recipe.network, s));
        std::vector<CorpusRow> seen;
        for (int update = 0; update <= kUpdates; ++update) {
          if (update > 0) {
            const auto& more = stream.arriving[static_cast<std::size_t>(update - 1)];
            seen.insert(seen.end(), more.begin(), more.end());
            model.records() = make_dataset(corpus, seen, inputs_of(method.model), threads).value();
            model.update(threads);
          }
          if (!model.is_trained()) continue;
          const TaskQuality q = quality(model.model(), test, threads);
          top1[method.name][update].values.push_back(q.top1);
          pairwise[method.name][update].values.push_back(q.pairwise);
        }
        std::fprintf(stderr, "%s to %s, %s, seed %d: top1 %.3f\n", from, to, method.name, seed,
                     top1[method.name][kUpdates].values.back());
      }
    }
    for (const auto& [name, curve] : top1) {
      for (const auto& [update, values] : curve) {
        const std::string row = fmt::format("{}_to_{}/{}@{}", from, to, name,
                                            static_cast<std::size_t>(update) * kArriving);
        out.push_back({"top1/" + row, values.mean(), "", std::nullopt, values.range()});
        const Mean& pairs = pairwise[name][update];
        out.push_back({"pairwise/" + row, pairs.mean(), "", std::nullopt, pairs.range()});
      }
    }
  }
  return out;
}

}  // namespace prunerc::bench
