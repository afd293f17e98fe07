// What the kernels of a scheduled program ask of a GPU, found on block IR: whether a candidate can
// run at all is known before anything is lowered or compiled.
#ifndef PRUNERC_SCHEDULE_LEGALITY_GPU_LIMITS_H_
#define PRUNERC_SCHEDULE_LEGALITY_GPU_LIMITS_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::schedule {

/// One kernel: an outermost loop with a thread axis.
struct GpuNeeds {
  ir::LoopId loop;
  std::string name;  // of the last block in it
  std::array<int64_t, 3> grid = {1, 1, 1};
  std::array<int64_t, 3> block = {1, 1, 1};
  /// Virtual threads that one thread runs, at most.
  int64_t vthreads = 1;
  /// Buffers in scope shared: the box that a block touches inside the loops that hold all uses,
  /// rows as storage_align says, copies of double_buffer and software_pipeline. Those that live at
  /// different times share their place, but none has that of what is copied in bulk.
  int64_t smem_bytes = 0;
  /// 4-byte registers that one thread's local buffers take at one time, and some addresses; a
  /// compiler needs more.
  int64_t registers = 0;

  int64_t threads() const { return block[0] * block[1] * block[2]; }
  bool operator==(const GpuNeeds&) const = default;
};

/// By kernel, in program order. Errors: LoopExtentNotConstant; LoopNestedParallel,
/// ThreadAxisExtent.
Result<std::vector<GpuNeeds>> gpu_needs(const ir::Program& program);

/// Does every kernel fit, and is there no statement outside of kernels? Always for a CPU.
/// Errors: GpuLimit, those of gpu_needs.
Result<void> check_gpu_limits(const ir::Program& program, const ir::Target& target);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_GPU_LIMITS_H_
