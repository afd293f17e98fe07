// Which iterations of a loop leave each other's elements alone. Internal.
#ifndef PRUNERC_IR_FPV_APART_H_
#define PRUNERC_IR_FPV_APART_H_

#include "ir/fpv/code.h"

#include <cstdint>
#include <vector>

namespace prunerc::ir {

/// By loop statement: the buffers of which no two of its iterations touch the same element, read off the digits of
/// their addresses. What is not proven is not there. Cost: O(accesses * depth).
std::vector<std::vector<int32_t>> find_apart(const FpCode& code);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_FPV_APART_H_
