// Pieces of reading operators and nets.
#ifndef PRUNERC_TOOLS_DRIVER_OPERATOR_H_
#define PRUNERC_TOOLS_DRIVER_OPERATOR_H_

#include "ir/support/result.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc {

/// "64x64x3" as extents; `name` is whose. Errors: UsageOption.
Result<std::vector<int64_t>> parse_shape(const std::string& name, const std::string& text);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_OPERATOR_H_
