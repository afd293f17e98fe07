#include "tests/bench/costmodel/train.h"

#include "ir/support/check.h"
#include "search/model/ranker.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search
using costmodel::model::Dataset;
using costmodel::model::Model;

double Spread::mean() const {
  return std::accumulate(values.begin(), values.end(), 0.0) /
         static_cast<double>(std::max<std::size_t>(1, values.size()));
}

std::string Spread::range() const {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  return values.empty() ? "" : fmt::format("{:.3f} to {:.3f}", *low, *high);
}

Split split_by_operator(const Corpus& corpus, int seed, const ModelOptions& options) {
  const auto s = static_cast<uint64_t>(seed);
  const std::vector<CorpusRow> rows = all_rows(corpus);
  std::vector<CorpusRow> judged;
  std::copy_if(rows.begin(), rows.end(), std::back_inserter(judged), [&](const CorpusRow& row) {
    const std::string& path = corpus.paths[static_cast<std::size_t>(row.pool)];
    return path.find(options.test_pools) != std::string::npos;
  });
  const Split drawn = split_rows(corpus, judged, SplitKind::kByTask, options.test_share, {}, s);
  std::set<std::string> held;
  for (const CorpusRow& row : drawn.test) {
    held.insert(corpus.pools[static_cast<std::size_t>(row.pool)].program);
  }
  const std::vector<std::string> names(held.begin(), held.end());
  Split out = split_rows(corpus, rows, SplitKind::kByTask, options.test_share, names, s);
  out.test = drawn.test;
  return out;
}

Dataset select(const Dataset& data, const std::vector<int>& which) {
  Dataset out;
  out.inputs = gather(data.inputs, which);
  for (const int i : which) out.outcomes.push_back(data.outcomes[static_cast<std::size_t>(i)]);
  return out;
}

Dataset of_tasks(const Dataset& data, const std::set<int32_t>& tasks) {
  std::vector<int> which;
  for (int i = 0; i < data.size(); ++i) {
    if (tasks.contains(data.outcomes[static_cast<std::size_t>(i)].task)) which.push_back(i);
  }
  return select(data, which);
}

Model train_network(const Dataset& data, costmodel::model::NetworkKind kind, uint64_t seed,
                    const ModelOptions& options, ThreadPool& threads) {
  Recipe recipe = recipe_of(kind);
  if (options.epochs > 0) recipe.train.epochs = options.epochs;
  recipe.train.seed = seed;
  Model model = costmodel::model::make_model(recipe.network, recipe.members, seed);
  const auto trained = costmodel::model::train(data, recipe.train, &threads, &model);
  PRUNERC_CHECK(trained.ok(), trained.ok() ? "" : trained.error().message().c_str());
  return model;
}

TaskQuality judge(const Model& model, const Dataset& test, ThreadPool& threads) {
  return mean_quality(quality_of(test, make_ranker(model)(test, threads)));
}

}  // namespace prunerc::bench
