#include "ir/support/check.h"
#include "search/model/dataset.h"
#include "search/model/inputs.h"
#include "search/model/ranker.h"
#include "tests/bench/costmodel/rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search

namespace {

constexpr int kThreads = 2;
constexpr int kRounds = 15;
constexpr std::size_t kDraft = 512;
constexpr std::size_t kRecords = 2000;

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
  return spent.count();
}

Row median_row(const std::string& name, std::vector<double> values, const std::string& unit,
               std::optional<double> goal) {
  std::sort(values.begin(), values.end());
  return {name,
          values[values.size() / 2],
          unit,
          goal,
          fmt::format("{:.3g} to {:.3g}, {} rounds", values.front(), values.back(), values.size()),
          true};
}

}  // namespace

std::vector<Row> speed_rows(const ModelOptions& options) {
  ThreadPool threads(kThreads);
  const Corpus corpus = bench_corpus(options);
  const RankerKind kind = RankerKind::kPacm;
  const auto conv = std::find_if(corpus.pools.begin(), corpus.pools.end(),
                                 [](const Pool& p) { return p.op == "conv_3x3"; });
  PRUNERC_CHECK(conv != corpus.pools.end(), "a pool of conv_3x3");
  const auto pool = static_cast<int>(conv - corpus.pools.begin());
  std::vector<CorpusRow> rows;
  for (const CorpusRow& row : all_rows(corpus)) {
    if (row.pool == pool && rows.size() < kRecords) rows.push_back(row);
  }
  auto records = make_dataset(corpus, rows, inputs_of(kind), threads).value();
  const Recipe recipe = recipe_of(*network_of(kind));
  costmodel::model::Model model = costmodel::model::make_model(recipe.network, recipe.members, 1);
  costmodel::model::TrainOptions quick = recipe.train;
  quick.epochs = 2;
  PRUNERC_CHECK(costmodel::model::train(records, quick, &threads, &model).ok(), "it trains");

  const Task task = conv->task().value();
  const SearchSpace space = conv->space();
  const InputSource source(task, space);
  std::vector<Genome> draft;
  for (std::size_t i = 0; i < kDraft; ++i) {
    const PoolRow& row = conv->rows[i % conv->rows.size()];
    draft.push_back({row.sketch, row.decisions});
  }
  std::vector<double> infer_ms, feature_ms, update_s;
  std::vector<costmodel::model::Prediction> scores(kDraft);
  for (int round = 0; round < kRounds; ++round) {
    costmodel::model::Batch<float> batch;
    feature_ms.push_back(
        1e3 * seconds_of([&] { source.append(recipe.network, draft, threads, &batch); }));
    infer_ms.push_back(
        feature_ms.back() +
        1e3 * seconds_of([&] { costmodel::model::predict(model, batch, {}, &threads, scores); }));
  }
  for (int round = 0; round < kRounds / 3; ++round) {
    costmodel::model::Model updated = model;
    update_s.push_back(seconds_of([&] {
      PRUNERC_CHECK(
          costmodel::model::train(records, costmodel::model::warm_update(), &threads, &updated)
              .ok(),
          "it trains");
    }));
  }
  const std::string size = fmt::format("{} members, {} threads", recipe.members, kThreads);
  Row infer = median_row("infer_512_ms", infer_ms, "ms", 20);
  infer.note += ", with features; " + size;
  Row features = median_row("features_512_ms", feature_ms, "ms", std::nullopt);
  Row update = median_row("update_2000_s", update_s, "s", 0.5);
  update.note += fmt::format(", {} records", records.size());
  return {infer, features, update};
}

}  // namespace prunerc::bench
