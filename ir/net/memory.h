// Where the intermediate tensors of a net lie in one block of memory.
#ifndef PRUNERC_IR_NET_MEMORY_H_
#define PRUNERC_IR_NET_MEMORY_H_

#include "ir/net/net.h"

#include <cstdint>
#include <vector>

namespace prunerc::net {

/// Tensors start at multiples of it. Units: bytes.
inline constexpr int64_t kTensorAlignment = 64;

struct MemoryPlan {
  std::vector<int64_t> offsets;  ///< by tensor; -1: no intermediate, or const. Units: bytes
  int64_t bytes = 0;             ///< of the block
  int64_t lower_bound = 0;       ///< the most that is alive at once: no plan takes less
};

/// Whether tensors that are not alive at the same call share memory, or each keeps its place until
/// the end of a run, so that it can be looked at.
enum class Reuse : uint8_t { kShared, kKept };

/// Largest first, each at the lowest place where it overlaps no tensor that is alive with it; calls
/// run in their order. Cost: O(intermediates^2).
MemoryPlan plan_memory(const Net& net, Reuse reuse = Reuse::kShared);

}  // namespace prunerc::net

#endif  // PRUNERC_IR_NET_MEMORY_H_
