#include "search/model/ranker.h"

#include "costmodel/xgb.h"
#include "ir/support/check.h"
#include "ir/support/rng.h"
#include "search/model/inputs.h"
#include "search/model/join.h"

#include <algorithm>
#include <array>
#include <memory>

namespace prunerc::search {

using costmodel::model::Dataset;
using costmodel::model::Model;
using costmodel::model::NetworkKind;
using costmodel::model::NetworkOptions;

namespace {

struct RankerRow {
  std::string_view name, words;
};
constexpr std::array kRankers = {
#define PRUNERC_RANKER(Name, text, words) RankerRow{text, words},
#include "search/model/ranker.def"
#undef PRUNERC_RANKER
};

std::vector<float> network_scores(const Model& model, const Dataset& data, ThreadPool& threads) {
  std::vector<float> out(static_cast<std::size_t>(data.size()));
  // One task at a time, as searches ask: with batch statistics scores depend on the others.
  for (const std::vector<int>& group : costmodel::model::groups_of(data)) {
    std::vector<costmodel::model::Prediction> made(group.size());
    costmodel::model::predict(model, gather(data.inputs, group), {}, &threads, made);
    for (std::size_t i = 0; i < group.size(); ++i) {
      out[static_cast<std::size_t>(group[i])] = made[i].score;
    }
  }
  return out;
}

// The statements of each program, as trees take them: without the tag, which is one for a task.
std::vector<costmodel::ProgramFeatures> statements_of(const Dataset& data) {
  std::vector<costmodel::ProgramFeatures> out(static_cast<std::size_t>(data.size()));
  for (std::size_t i = 0; i < out.size(); ++i) {
    for (int r = data.inputs.statement_begin[i]; r < data.inputs.statement_begin[i + 1]; ++r) {
      const float* row = data.inputs.statements.row(r);
      costmodel::StatementFeatures& features = out[i].emplace_back();
      std::copy_n(row, features.size(), features.begin());
    }
  }
  return out;
}

std::vector<const costmodel::ProgramFeatures*> pointers(
    const std::vector<costmodel::ProgramFeatures>& features) {
  std::vector<const costmodel::ProgramFeatures*> out;
  for (const costmodel::ProgramFeatures& f : features) out.push_back(&f);
  return out;
}

// Throughputs less their task's mean. Scores are sums over statements: with labels that are all
// positive a program would seem the faster the more statements it has.
std::vector<float> labels_within_tasks(const Dataset& data) {
  std::vector<float> labels = costmodel::model::targets_of(data).label;
  for (const std::vector<int>& group : costmodel::model::groups_of(data)) {
    double sum = 0;
    for (const int i : group) sum += labels[static_cast<std::size_t>(i)];
    const auto mean = static_cast<float>(sum / static_cast<double>(group.size()));
    for (const int i : group) labels[static_cast<std::size_t>(i)] -= mean;
  }
  return labels;
}

// Inputs are not normalised, as nothing is fitted.
std::vector<float> analyzer_scores(const Dataset& data) {
  PRUNERC_CHECK(data.size() == 0 || data.inputs.context.cols() > kAnalyzerLatencyColumn,
                "the inputs of pacm");
  std::vector<float> out;
  for (int i = 0; i < data.size(); ++i) {
    out.push_back(-data.inputs.context(i, kAnalyzerLatencyColumn));
  }
  return out;
}

// What orders a search's draft until something is measured.
std::vector<float> joined_scores(const Model& model, const Dataset& data, ThreadPool& threads) {
  const std::vector<float> by_model = network_scores(model, data, threads);
  const std::vector<float> by_analyzer = analyzer_scores(data);
  std::vector<float> out(by_model.size());
  for (const std::vector<int>& group : costmodel::model::groups_of(data)) {
    std::vector<double> model_of, analyzer_of;
    for (const int i : group) {
      model_of.push_back(by_model[static_cast<std::size_t>(i)]);
      analyzer_of.push_back(by_analyzer[static_cast<std::size_t>(i)]);
    }
    const std::vector<double> joined = join_ranks(model_of, analyzer_of, model_weight(kHeadStart));
    for (std::size_t i = 0; i < group.size(); ++i) {
      out[static_cast<std::size_t>(group[i])] = static_cast<float>(joined[i]);
    }
  }
  return out;
}

std::vector<float> random_scores(uint64_t seed, const Dataset& data) {
  Rng rng(seed);
  std::vector<float> out;
  for (int i = 0; i < data.size(); ++i) out.push_back(static_cast<float>(rng.uniform()));
  return out;
}

}  // namespace

std::string_view to_string(RankerKind kind) {
  return kRankers[static_cast<std::size_t>(kind)].name;
}
std::string_view describe(RankerKind kind) {
  return kRankers[static_cast<std::size_t>(kind)].words;
}

std::optional<NetworkKind> network_of(RankerKind kind) {
  if (kind == RankerKind::kPacmPaperTrain) return NetworkKind::kPacmPaper;
  if (kind == RankerKind::kVerifier) return NetworkKind::kPacm;
  return costmodel::model::network_kind_from_string(to_string(kind));
}

Recipe recipe_of(NetworkKind kind, ir::TargetKind target) {
  Recipe out;
  out.network = network_options(kind, target);
  if (kind == NetworkKind::kPacm) {
    out.members = 2;
    // Chosen on the Zen 5 pools by three splits by task: more epochs and smaller decay fit the
    // tasks that are known.
    out.train.epochs = 10;
    out.train.optimizer.weight_decay = 1e-4;
    out.train.rank.even_share = 0.1;
    return out;
  }
  out.network.statistics = costmodel::nn::Statistics::kRunning;
  out.train = costmodel::model::published_training();
  if (kind == NetworkKind::kTensetMlp) out.train.patience = 8;
  if (kind == NetworkKind::kTlp) {
    out.train.batch = 1024;
    out.train.patience = 0;
  }
  return out;
}

NetworkOptions inputs_of(RankerKind kind) {
  // What the analyzer says is among the inputs of our own network.
  if (kind == RankerKind::kAnalyzer) return network_options(NetworkKind::kPacm);
  return network_options(network_of(kind).value_or(NetworkKind::kTensetMlp));
}

Result<Ranker> train_ranker(RankerKind kind, const Dataset& data, const RankerOptions& options,
                            ThreadPool& threads, const costmodel::model::Progress& progress) {
  if (const std::optional<NetworkKind> network = network_of(kind)) {
    Recipe recipe = recipe_of(*network);
    if (options.epochs > 0) recipe.train.epochs = options.epochs;
    if (options.members > 0) recipe.members = options.members;
    recipe.train.seed = options.seed;
    Model model = costmodel::model::make_model(recipe.network, recipe.members, options.seed);
    model.feature_set = feature_set(*network);
    PRUNERC_TRY_VOID(costmodel::model::train(data, recipe.train, &threads, &model, progress));
    if (kind == RankerKind::kVerifier) {
      return Ranker([model = std::move(model)](const Dataset& asked, ThreadPool& pool) {
        return joined_scores(model, asked, pool);
      });
    }
    const bool stays_training = kind == RankerKind::kPacmPaperTrain;
    return make_ranker(
        with_statistics(std::move(model), stays_training ? costmodel::nn::Statistics::kBatch
                                                         : costmodel::nn::Statistics::kRunning));
  }
  if (kind == RankerKind::kAnalyzer) {
    return Ranker([](const Dataset& asked, ThreadPool&) { return analyzer_scores(asked); });
  }
  if (kind == RankerKind::kRandom) {
    return Ranker([seed = options.seed](const Dataset& asked, ThreadPool&) {
      return random_scores(seed, asked);
    });
  }
  costmodel::TreeOptions trees = costmodel::trees_of_many_tasks();
  trees.seed = options.seed;
  const std::vector<costmodel::ProgramFeatures> features = statements_of(data);
  const std::vector<float> labels = labels_within_tasks(data);
  const std::vector<float> even(labels.size(), 1.0F);
  PRUNERC_TRY(costmodel::TreeEnsemble made,
              costmodel::TreeEnsemble::fit(pointers(features), labels, even, trees));
  const auto fitted = std::make_shared<const costmodel::TreeEnsemble>(std::move(made));
  return Ranker([fitted](const Dataset& asked, ThreadPool&) {
    const std::vector<costmodel::ProgramFeatures> statements = statements_of(asked);
    std::vector<double> scores(statements.size());
    fitted->predict(pointers(statements), scores);
    return std::vector<float>(scores.begin(), scores.end());
  });
}

Ranker make_ranker(Model model) {
  return [model = std::move(model)](const Dataset& data, ThreadPool& threads) {
    return network_scores(model, data, threads);
  };
}

}  // namespace prunerc::search
