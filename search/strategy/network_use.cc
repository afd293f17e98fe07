#include "search/strategy/network_use.h"

#include "costmodel/model/checkpoint.h"
#include "costmodel/pretrained/pretrained.h"
#include "search/model/inputs.h"
#include "search/model/ranker.h"

namespace prunerc::search {

using costmodel::model::Model;
using costmodel::model::NetworkKind;

std::optional<NetworkUse> network_use(StrategyKind kind) {
  constexpr auto kMaybe = NetworkStart::kPreferCheckpoint;
  constexpr auto kNeed = NetworkStart::kNeedCheckpoint;
  constexpr auto kNone = NetworkStart::kUntrained;
  switch (kind) {
    case StrategyKind::kPruner: return NetworkUse{NetworkKind::kPacm, OnlineKind::kWarm, kMaybe};
    case StrategyKind::kMoaPruner: return NetworkUse{NetworkKind::kPacm, OnlineKind::kMoa, kMaybe};
    case StrategyKind::kPrunerOffline:
      return NetworkUse{NetworkKind::kPacm, OnlineKind::kFrozen, kNeed};
    case StrategyKind::kPrunerPaper:
      return NetworkUse{NetworkKind::kPacmPaper, OnlineKind::kScratch, kNone};
    case StrategyKind::kPrunerRelease:
      return NetworkUse{NetworkKind::kPacmPaper, OnlineKind::kScratch, kNone, true};
    case StrategyKind::kMoaPrunerPaper:
      return NetworkUse{NetworkKind::kPacmPaper, OnlineKind::kMoaPaper, kNeed};
    case StrategyKind::kTensetOffline:
      return NetworkUse{NetworkKind::kTensetMlp, OnlineKind::kFrozen, kNeed};
    case StrategyKind::kTlpOffline:
      return NetworkUse{NetworkKind::kTlp, OnlineKind::kFrozen, kNeed};
    default: return std::nullopt;
  }
}

Result<void> check_features(const Model& model, const std::string& path) {
  const costmodel::model::NetworkOptions own = network_options(model.options.kind);
  const costmodel::model::NetworkOptions& has = model.options;
  const bool fits = has.statement_inputs == own.statement_inputs &&
                    has.flow_inputs == own.flow_inputs &&
                    has.context_inputs == own.context_inputs &&
                    has.token_length == own.token_length && has.token_inputs == own.token_inputs;
  if (fits && model.feature_set == kFeatureSet) return {};
  return error(Diag::kModelFeatures, path, model.feature_set, std::string(kFeatureSet));
}

const Model* built_in_model(ir::TargetKind target) {
  static const Result<Model> cpu =
      costmodel::model::parse_checkpoint(costmodel::pretrained_cpu(), "built-in");
  const bool fits = target == ir::TargetKind::kCpu && cpu.ok() && check_features(*cpu, "").ok();
  return fits ? &*cpu : nullptr;
}

Result<std::shared_ptr<OnlineModel>> open_network(const NetworkUse& use,
                                                  const std::string& checkpoint,
                                                  ir::TargetKind target, uint64_t seed) {
  const std::string name(to_string(use.network));
  Model model;
  if (use.start != NetworkStart::kUntrained && !checkpoint.empty()) {
    PRUNERC_TRY(model, costmodel::model::read_checkpoint(checkpoint));
    PRUNERC_TRY_VOID(check_features(model, checkpoint));
    if (!model.has_normalisers && use.start == NetworkStart::kNeedCheckpoint) {
      return error(Diag::kModelMissing, name);
    }
    if (model.options.kind != use.network) {
      return error(Diag::kModelKind, checkpoint, std::string(to_string(model.options.kind)), name);
    }
  } else {
    const Model* built_in =
        use.start == NetworkStart::kUntrained ? nullptr : built_in_model(target);
    if (built_in != nullptr && built_in->options.kind == use.network) {
      model = *built_in;
    } else if (use.start == NetworkStart::kNeedCheckpoint) {
      return error(Diag::kModelMissing, name);
    } else {
      const Recipe recipe = recipe_of(use.network);
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
