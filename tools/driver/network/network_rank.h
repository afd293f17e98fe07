// Which of the schedules that were fastest alone are fastest within the running network.
#ifndef PRUNERC_TOOLS_DRIVER_NETWORK_NETWORK_RANK_H_
#define PRUNERC_TOOLS_DRIVER_NETWORK_NETWORK_RANK_H_

#include "tools/driver/network/network.h"
#include "tools/driver/prunerc.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace prunerc {

struct RankOptions {
  int contenders = 8;   ///< of a task, at most
  double share = 0.97;  ///< of the network's time: its heaviest tasks, until they make up so much
  double time_s = 60;   ///< about; 0: no limit
  uint64_t seed = 0;
  const std::atomic<bool>* cancel = nullptr;
};

struct RankReport {
  double before_ns = 0, after_ns = 0;  ///< the whole network, medians; equal if nothing changes
  int num_contenders = 0;              ///< of all tasks that have more than one
  int num_changed = 0;                 ///< tasks that another schedule was chosen for
};

/// Runs of the network with a clock between the calls, as Network::run_timed.
using TimedNetworkRun = std::function<Result<void>(Network&, std::vector<int64_t>* times_ns)>;

/// Times the network with many mixtures of its tasks' contenders: each mixture says something of every
/// task at once, with neighbours, weights and activations where they are in a run. Three rounds, of which
/// each keeps a third; the winners together must beat what would be chosen without them, else nothing
/// changes, as when it is cancelled. What was timed last is stored for this network, verified, and chosen
/// from then on; a winner that is not right is left out, and what is left timed once more. Errors: those of choosing, compiling, preparing, running and storing.
Result<RankReport> rank_in_network(Session& session, const net::Net& net,
                                   const WeightSource& weights, const TimedNetworkRun& run,
                                   const RankOptions& options);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_NETWORK_NETWORK_RANK_H_
