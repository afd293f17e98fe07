// A model with several values for its dimensions: one net for each combination.
#ifndef PRUNERC_TOOLS_DRIVER_NETWORK_SIZES_H_
#define PRUNERC_TOOLS_DRIVER_NETWORK_SIZES_H_

#include "codegen/cpu/export.h"
#include "tools/driver/network/network.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc {

/// Most combinations of a request: each is a plan of the library, with kernels of its own.
inline constexpr std::size_t kMostSizes = 64;

struct SizedNet {
  std::vector<int64_t> sizes;  ///< a value of each of SizedNets::dims
  std::string text;            ///< "batch=1,seq=32"; empty if nothing is listed
  LoadedNet net;
};

struct SizedNets {
  std::vector<codegen::NetDim> dims;  ///< what is listed; empty: there is one net
  std::vector<SizedNet> nets;         ///< all combinations, the last dimension's values first
};

/// As load_net, of a request that may list values. Empty if it is about an operator. Errors: those of
/// load_net; UsageOption (a list for what is no model; too many combinations, a value twice).
Result<SizedNets> load_nets(const OperatorRequest& request);

/// Of all of them: equal tasks once, their weights added.
std::vector<Operator> operators_of(const SizedNets& nets);

/// For what takes one value of each. Errors: UsageOption, with what takes lists.
Result<void> check_not_listed(const OperatorRequest& request);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_NETWORK_SIZES_H_
