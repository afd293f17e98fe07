#include "tests/bench/draft/over_network.h"

#include "search/strategy/genetic.h"
#include "search/strategy/network_use.h"

#include <map>
#include <memory>

namespace prunerc::bench {

using namespace search;  // NOLINT: a benchmark of search

decltype(TuneOptions::make_strategy) ansor_over_network(StrategyKind kind,
                                                        const std::string& checkpoint) {
  using Networks = std::map<ir::TargetKind, std::shared_ptr<OnlineModel>>;
  return [kind, checkpoint, networks = std::make_shared<Networks>()](
             const StrategyContext& given) -> Result<std::unique_ptr<Strategy>> {
    const ir::TargetKind target = given.task.target.kind;
    std::shared_ptr<OnlineModel>& network = (*networks)[target];
    if (network == nullptr) {
      PRUNERC_TRY(network, open_network(*network_use(kind), checkpoint, target, given.seed));
    }
    StrategyContext context = given;
    context.network = network;
    PRUNERC_TRY(std::unique_ptr<Scorer> scorer, make_scorer(kind, context));
    return make_genetic(context, ansor_options(), std::move(scorer));
  };
}

}  // namespace prunerc::bench
