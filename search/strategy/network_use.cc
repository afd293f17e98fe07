#include "search/strategy/network_use.h"

#include "costmodel/model/checkpoint.h"
#include "costmodel/pretrained/pretrained.h"
#include "ir/support/check.h"
#include "search/model/inputs.h"
#include "search/model/ranker.h"

namespace prunerc::search {

using costmodel::model::Model;
using costmodel::model::NetworkKind;

namespace {

std::optional<NetworkKind> network_of(Ranks ranks) {
  switch (ranks) {
    case Ranks::kNone:
    case Ranks::kAnalyzer:
    case Ranks::kTrees: return std::nullopt;
    case Ranks::kPacm: return NetworkKind::kPacm;
    case Ranks::kPacmPaper:
    case Ranks::kPacmBatch: return NetworkKind::kPacmPaper;
    case Ranks::kTensetMlp: return NetworkKind::kTensetMlp;
    case Ranks::kTlp: return NetworkKind::kTlp;
  }
  PRUNERC_UNREACHABLE("ranks");
}

struct NetworkRow {
  Ranks ranks;
  OnlineKind learns;
  NetworkStart starts;
};
constexpr NetworkRow kRows[] = {
#define PRUNERC_STRATEGY(Name, text, batch, in_flight, first, proposes, ranks, learns, starts, \
                         words)                                                                \
  {Ranks::k##ranks, OnlineKind::k##learns, NetworkStart::k##starts},
#include "search/strategy/strategy.def"
#undef PRUNERC_STRATEGY
};

}  // namespace

std::optional<NetworkUse> network_use(StrategyKind kind) {
  const NetworkRow& row = kRows[static_cast<std::size_t>(kind)];
  const std::optional<NetworkKind> network = network_of(row.ranks);
  if (!network) return std::nullopt;
  return NetworkUse{*network, row.learns, row.starts, row.ranks == Ranks::kPacmBatch};
}

Result<void> check_features(const Model& model, const std::string& path, ir::TargetKind target) {
  const costmodel::model::NetworkOptions own = network_options(model.options.kind, target);
  const costmodel::model::NetworkOptions& has = model.options;
  const bool fits =
      model.options.kind == NetworkKind::kTlp
          ? has.token_length == own.token_length && has.token_inputs == own.token_inputs
          : has.statement_inputs == own.statement_inputs && has.flow_inputs == own.flow_inputs &&
                has.context_inputs == own.context_inputs;
  const std::string set(feature_set(model.options.kind));
  if (fits && model.feature_set == set) return {};
  return error(Diag::kModelFeatures, path, model.feature_set, set);
}

const Model* built_in_model(ir::TargetKind target) {
  static const Result<Model> cpu =
      costmodel::model::parse_checkpoint(costmodel::pretrained_cpu(), "built-in");
  const bool fits =
      target == ir::TargetKind::kCpu && cpu.ok() && check_features(*cpu, "", target).ok();
  return fits ? &*cpu : nullptr;
}

Result<std::shared_ptr<OnlineModel>> open_network(const NetworkUse& use,
                                                  const std::string& checkpoint,
                                                  ir::TargetKind target, uint64_t seed) {
  const std::string name(to_string(use.network));
  Model model;
  const bool is_none = checkpoint == kNoCheckpoint;
  if (use.start != NetworkStart::kUntrained && !checkpoint.empty() && !is_none) {
    PRUNERC_TRY(model, costmodel::model::read_checkpoint(checkpoint));
    PRUNERC_TRY_VOID(check_features(model, checkpoint, target));
    if (!model.has_normalisers && use.start == NetworkStart::kNeedCheckpoint) {
      return error(Diag::kModelMissing, name);
    }
    if (model.options.kind != use.network) {
      return error(Diag::kModelKind, checkpoint, std::string(to_string(model.options.kind)), name);
    }
  } else {
    const Model* built_in =
        use.start == NetworkStart::kUntrained || is_none ? nullptr : built_in_model(target);
    if (built_in != nullptr && built_in->options.kind == use.network) {
      model = *built_in;
    } else if (use.start == NetworkStart::kNeedCheckpoint) {
      return error(Diag::kModelMissing, name);
    } else {
      const Recipe recipe = recipe_of(use.network, target);
      model = costmodel::model::make_model(recipe.network, recipe.members, seed);
    }
  }
  if (use.network == NetworkKind::kPacmPaper) {
    model = with_statistics(std::move(model), use.batch_statistics
                                                  ? costmodel::nn::Statistics::kBatch
                                                  : costmodel::nn::Statistics::kRunning);
  }
  const OnlineOptions options = online_options(use.online, model.options, seed);
  return std::make_shared<OnlineModel>(std::move(model), options);
}

}  // namespace prunerc::search
