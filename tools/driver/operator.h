// Pieces of reading operators and nets.
#ifndef PRUNERC_TOOLS_DRIVER_OPERATOR_H_
#define PRUNERC_TOOLS_DRIVER_OPERATOR_H_

#include "ir/support/result.h"
#include "tools/driver/network/network.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc {

/// Over a model, and over a net if that is asked for. Errors: those of net::run_passes.
Result<void> run_passes(const OperatorRequest& request, LoadedNet& net);

/// "64x64x3" as extents; `name` is whose. Errors: UsageOption.
Result<std::vector<int64_t>> parse_shape(const std::string& name, const std::string& text);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_OPERATOR_H_
