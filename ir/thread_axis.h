// Axes of a kernel launch: loops bound to block.x .. vthread.z.
#ifndef PRUNERC_IR_THREAD_AXIS_H_
#define PRUNERC_IR_THREAD_AXIS_H_

#include "ir/stmt.h"
#include "ir/support/result.h"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace prunerc::ir {

/// Bound to block.*, thread.* or vthread.*.
inline bool is_thread_axis(LoopKind kind) { return kind >= LoopKind::kBlockX; }
/// block.*: one instance of the kernel's program each.
inline bool is_block_axis(LoopKind kind) {
  return kind >= LoopKind::kBlockX && kind <= LoopKind::kBlockZ;
}
/// thread.*: the threads of one block, which share memory and can combine partial results.
inline bool is_lane_axis(LoopKind kind) {
  return kind >= LoopKind::kThreadX && kind <= LoopKind::kThreadZ;
}
/// Iterations may run in any order or at once: parallel, vectorized or a thread axis.
inline bool is_concurrent(LoopKind kind) {
  return kind == LoopKind::kParallel || kind == LoopKind::kVectorized || is_thread_axis(kind);
}
/// CUDA's own limits along x, y and z, the same for every architecture that it names.
inline constexpr std::array<int64_t, 3> kMostBlocks = {2147483647, 65535, 65535};
inline constexpr std::array<int64_t, 3> kMostThreads = {1024, 1024, 64};

/// Lanes of a tensor instruction are thread.x; where that is one warp and thread.y has as many as the lanes fill, they
/// are these. The number of rows of thread.x that the lanes are in a block of x times y threads.
inline int64_t rows_of_lanes(int64_t lanes, int64_t x, int64_t y) {
  constexpr int64_t kWarp = 32;
  return x == kWarp && x * y == lanes ? y : 1;
}

std::optional<LoopKind> loop_kind_from_string(std::string_view name);

/// A kernel is a loop with a thread axis that stands in no other such loop. In each: no axis stands
/// inside itself, no block.* inside thread.* or vthread.*, nothing concurrent of the CPU (parallel)
/// around or inside, and each block.* and thread.* has one extent wherever it occurs (vthread.* is
/// expanded inside one thread, so that its extents are free).
/// Errors: LoopNestedParallel, ThreadAxisExtent.
Result<void> check_thread_axes(Stmt root);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_THREAD_AXIS_H_
