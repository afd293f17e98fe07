#include "tests/bench/costmodel_train.h"

#include "ir/support/check.h"
#include "search/learn/ranker.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

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
  return mean_quality(quality_of(test, make_ranker(model)->scores(test, threads)));
}

}  // namespace prunerc::bench
