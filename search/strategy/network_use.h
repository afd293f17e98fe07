// Which network a strategy asks, how that network learns, and where it comes from.
#ifndef PRUNERC_SEARCH_STRATEGY_NETWORK_USE_H_
#define PRUNERC_SEARCH_STRATEGY_NETWORK_USE_H_

#include "costmodel/model/options.h"
#include "ir/support/result.h"
#include "ir/target.h"
#include "search/model/online.h"
#include "search/strategy/strategies.h"

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace prunerc::search {

/// Where a network starts.
enum class NetworkStart : uint8_t {
  kUntrained,
  kPreferCheckpoint,  // the given one, else the one that is built in, else untrained
  kNeedCheckpoint,
};

struct NetworkUse {
  costmodel::model::NetworkKind network = costmodel::model::NetworkKind::kPacm;
  OnlineKind online = OnlineKind::kWarm;
  NetworkStart start = NetworkStart::kUntrained;
  /// The release never leaves training mode, so that a score depends on the other candidates.
  bool batch_statistics = false;
};

/// None for strategies that ask no network.
std::optional<NetworkUse> network_use(StrategyKind kind);

inline constexpr std::string_view kNoCheckpoint = "none";

/// What all tasks of a call share. `checkpoint`: a file; kNoCheckpoint: untrained; empty: the built-in
/// model, which is a pacm and made for `target`'s kind of machine. Errors: ModelMissing if one is needed and
/// there is none, or it is untrained; ModelFeatures, ModelKind if the file is of another build or
/// another network; those of reading.
Result<std::shared_ptr<OnlineModel>> open_network(const NetworkUse& use,
                                                  const std::string& checkpoint,
                                                  ir::TargetKind target, uint64_t seed);

/// Whether a model of a file takes the features that this build makes of the target's kind of machine.
/// Errors: ModelFeatures.
Result<void> check_features(const costmodel::model::Model& model, const std::string& path,
                            ir::TargetKind target);

/// The model that is built in; none for this kind of machine. Parsed at the first call.
const costmodel::model::Model* built_in_model(ir::TargetKind target);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_NETWORK_USE_H_
