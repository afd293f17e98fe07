// What parts of the learned models are worth: features and losses left out, one by one.
#include "ir/support/check.h"
#include "search/model/dataset.h"
#include "search/model/ranker.h"
#include "tests/bench/costmodel/rows.h"
#include "tests/bench/costmodel/runs.h"
#include "tests/bench/costmodel/train.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search
using costmodel::model::Dataset;
using costmodel::model::LossKind;
using costmodel::model::Model;
using costmodel::model::NetworkKind;
using costmodel::model::TrainOptions;

namespace {

/// A network with one thing changed: inputs that are all 0, or another loss.
struct Variant {
  const char* name;
  void (*change)(Dataset*);
  void (*train)(TrainOptions*);
};

void nothing(Dataset*) {}
void as_it_is(TrainOptions*) {}
void no_statements(Dataset* data) { data->inputs.statements.fill(0); }
void no_flow(Dataset* data) { data->inputs.flow.fill(0); }
void no_context(Dataset* data) { data->inputs.context.fill(0); }
// As published; of ours only the loss differs.
void published_squares(TrainOptions* train) { *train = costmodel::model::published_squares(); }
void squares(TrainOptions* train) { train->loss = LossKind::kSquares; }

constexpr Variant kPaper[] = {
    {"all", nothing, as_it_is},
    {"no_statements", no_statements, as_it_is},
    {"no_flow", no_flow, as_it_is},
    {"squared_error", nothing, published_squares},
};
constexpr Variant kOurs[] = {
    {"all", nothing, as_it_is},          {"no_statements", no_statements, as_it_is},
    {"no_flow", no_flow, as_it_is},      {"no_context", no_context, as_it_is},
    {"squared_error", nothing, squares},
};

std::set<int32_t> tasks_of(const Corpus& corpus, const std::vector<CorpusRow>& rows) {
  std::set<int32_t> out;
  for (const CorpusRow& row : rows) out.insert(corpus.task[static_cast<std::size_t>(row.pool)]);
  return out;
}

class Bench {
 public:
  explicit Bench(const ModelOptions& options) : options_(options), corpus_(bench_corpus(options)) {
    rows_ = search::prune_rows(corpus_, all_rows(corpus_), PruneKind::kRandom,
                               options.ablation_part, 1);
  }

  void run(NetworkKind kind, std::span<const Variant> variants) {
    const std::string network(to_string(kind));
    if (!is_wanted(network)) return;
    const Dataset data = make_dataset(corpus_, rows_, recipe_of(kind).network, threads_).value();
    std::vector<std::vector<Run>> runs;
    for (const Variant& variant : variants) {
      Dataset changed = data;
      variant.change(&changed);
      runs.emplace_back();
      for (int i = 0; i < options_.seeds; ++i) {
        runs.back().push_back(run_once(kind, variant, changed, options_.first_seed + i));
        std::fprintf(stderr, "%s/%s, seed %d: top1 %.3f, pairwise %.3f\n", network.c_str(),
                     variant.name, runs.back().back().seed,
                     mean_of(runs.back().back().tasks, &TaskQuality::top1),
                     mean_of(runs.back().back().tasks, &TaskQuality::pairwise));
      }
    }
    const auto operators = operators_by_class(corpus_).at("");
    for (const auto& [metric, field] :
         {std::pair{"top1", &TaskQuality::top1}, std::pair{"pairwise", &TaskQuality::pairwise}}) {
      for (std::size_t v = 0; v < variants.size(); ++v) {
        out.push_back(mean_row(fmt::format("{}/{}/{}", metric, network, variants[v].name), runs[v],
                               field, std::nullopt));
        if (v == 0) continue;
        // A part that is worth nothing is not above 0.
        out.push_back(
            difference_row(fmt::format("{}/{}/all_less_{}", metric, network, variants[v].name),
                           paired(runs[0], runs[v], field, operators, options_.bootstrap), 0.0));
      }
    }
  }

  std::vector<Row> out;

 private:
  bool is_wanted(const std::string& name) const {
    const std::vector<std::string>& named = options_.models;
    return named.empty() || std::find(named.begin(), named.end(), name) != named.end();
  }

  Run run_once(NetworkKind kind, const Variant& variant, const Dataset& data, int seed) {
    const Split split = split_by_operator(corpus_, seed, options_);
    const Dataset train = of_tasks(data, tasks_of(corpus_, split.train));
    const Dataset test = of_tasks(data, tasks_of(corpus_, split.test));
    Recipe recipe = recipe_of(kind);
    variant.train(&recipe.train);
    if (options_.epochs > 0) recipe.train.epochs = options_.epochs;
    recipe.train.seed = static_cast<uint64_t>(seed);
    Model model = costmodel::model::make_model(recipe.network, recipe.members, recipe.train.seed);
    const auto trained = costmodel::model::train(train, recipe.train, &threads_, &model);
    PRUNERC_CHECK(trained.ok(), trained.ok() ? "" : trained.error().message().c_str());
    Run run;
    run.seed = seed;
    for (const TaskQuality& task : quality_of(test, make_ranker(model)(test, threads_))) {
      run.tasks[task.task] = task;
    }
    return run;
  }

  const ModelOptions& options_;
  ThreadPool threads_{0};
  const Corpus corpus_;
  std::vector<CorpusRow> rows_;
};

}  // namespace

std::vector<Row> model_ablation_rows(const ModelOptions& options) {
  Bench bench(options);
  bench.run(NetworkKind::kPacmPaper, kPaper);
  bench.run(NetworkKind::kPacm, kOurs);
  return bench.out;
}

}  // namespace prunerc::bench
