#include "ir/support/check.h"
#include "search/model/dataset.h"
#include "search/model/quality.h"
#include "search/model/ranker.h"
#include "search/strategy/network_use.h"
#include "tests/bench/costmodel/rows.h"
#include "tests/bench/costmodel/runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search

namespace {

/// Orders drawn at random, whose mean is what chance gives.
constexpr int kRandomOrders = 200;

constexpr std::pair<const char*, Field> kMetrics[] = {{"top1", &TaskQuality::top1},
                                                      {"top5", &TaskQuality::top5},
                                                      {"pairwise", &TaskQuality::pairwise}};

// Adds a part of one seed's qualities.
void add(const std::vector<TaskQuality>& tasks, double part, Run* sum) {
  for (const TaskQuality& task : tasks) {
    for (const auto& [name, field] : kMetrics) sum->tasks[task.task].*field += part * (task.*field);
  }
}

class Frozen {
 public:
  explicit Frozen(const ModelOptions& options)
      : options_(options), corpus_(bench_corpus(options, options.frozen_pools)) {
    std::set<std::string> known, judged;  // canonical programs, whatever they are called
    for (const CorpusRow& row : all_rows(corpus_)) {
      const auto pool = static_cast<std::size_t>(row.pool);
      const bool is_judged = corpus_.paths[pool].starts_with(options.frozen_pools);
      (is_judged ? test_ : train_).push_back(row);
      (is_judged ? judged : known).insert(corpus_.pools[pool].program);
    }
    PRUNERC_CHECK(!judged.empty() && !known.empty(), "pools to learn from and pools to judge by");
    for (const std::string& program : judged) {
      PRUNERC_CHECK(!known.contains(program), ("is in the training data: " + program).c_str());
    }
    num_operators_ = judged.size();
  }

  std::vector<Row> rows() {
    released();
    for (int i = 0; i < kNumRankers; ++i) {
      const auto kind = static_cast<RankerKind>(i);
      const bool named = std::find(options_.models.begin(), options_.models.end(),
                                   to_string(kind)) != options_.models.end();
      if (options_.models.empty() || named) trained(kind);
    }
    std::vector<Row> out = {{"frozen/rows",
                             static_cast<double>(test_.size()),
                             "rows",
                             {},
                             fmt::format("of {} operators; {} of others to learn from",
                                         num_operators_, train_.size())}};
    for (const auto& [name, run] : models_) add_rows(name, run, &out);
    return out;
  }

 private:
  costmodel::model::Dataset dataset(const std::vector<CorpusRow>& rows, RankerKind kind) {
    return make_dataset(corpus_, rows, inputs_of(kind), threads_).value();
  }

  // The checkpoint that is built in, which learned from all pools.
  void released() {
    const costmodel::model::Model* model = built_in_model(ir::TargetKind::kCpu);
    PRUNERC_CHECK(model != nullptr, "there is a built-in model");
    const auto test = dataset(test_, RankerKind::kPacm);
    add(quality_of(test, make_ranker(*model)(test, threads_)), 1, &models_["built-in"]);
  }

  // Trained from scratch on equal rows.
  void trained(RankerKind kind) {
    const bool learns = kind != RankerKind::kAnalyzer && kind != RankerKind::kRandom;
    const int seeds = kind == RankerKind::kRandom ? kRandomOrders : learns ? options_.seeds : 1;
    const auto test = dataset(test_, kind);
    Run tasks;
    for (int i = 0; i < seeds; ++i) {
      const auto seed = static_cast<uint64_t>(options_.first_seed + i);
      const double part = std::min(
          1.0, static_cast<double>(options_.frozen_rows) / static_cast<double>(train_.size()));
      const auto train =
          dataset(learns ? search::prune_rows(corpus_, train_, PruneKind::kRandom, part, seed)
                         : std::vector(train_.begin(), train_.begin() + 1),
                  kind);
      RankerOptions ranker;
      ranker.seed = seed;
      ranker.epochs = options_.epochs;
      const Result<Ranker> made = train_ranker(kind, train, ranker, threads_);
      PRUNERC_CHECK(made.ok(), made.ok() ? "" : made.error().message().c_str());
      add(quality_of(test, (*made)(test, threads_)), 1.0 / seeds, &tasks);
    }
    std::fprintf(stderr, "%s: judged\n", std::string(to_string(kind)).c_str());
    const std::string suffix = learns ? fmt::format("@{}", options_.frozen_rows) : "";
    models_[std::string(to_string(kind)) + suffix] = std::move(tasks);
  }

  // Each with its interval over operators: the model, and how far the released one is ahead of it.
  void add_rows(const std::string& name, const Run& run, std::vector<Row>* out) const {
    const auto operators = operators_by_class(corpus_).at("");
    Run nothing;
    for (const auto& [task, quality] : run.tasks) nothing.tasks[task];
    for (const auto& [metric, field] : kMetrics) {
      const auto row = [&](const std::string& what, const Run& a, const Run& b) {
        out->push_back(difference_row(fmt::format("frozen/{}/{}", metric, what),
                                      paired({a}, {b}, field, operators, options_.bootstrap)));
      };
      row(name, run, nothing);
      if (name != "built-in") row("built-in_less_" + name, models_.at("built-in"), run);
    }
  }

  const ModelOptions& options_;
  ThreadPool threads_{0};
  Corpus corpus_;
  std::vector<CorpusRow> train_, test_;
  std::size_t num_operators_ = 0;
  std::map<std::string, Run> models_;  // a mean over the seeds of each
};

}  // namespace

std::vector<Row> frozen_rows(const ModelOptions& options) {
  if (!std::filesystem::is_directory(options.frozen_pools)) {
    std::fprintf(stderr, "%s is no folder of pools\n", options.frozen_pools.c_str());
    return {};
  }
  return Frozen(options).rows();
}

}  // namespace prunerc::bench
