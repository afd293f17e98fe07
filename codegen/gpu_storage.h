// Where the intermediates of lowered kernels live: offsets in shared memory and in the workspace.
#ifndef PRUNERC_CODEGEN_GPU_STORAGE_H_
#define PRUNERC_CODEGEN_GPU_STORAGE_H_

#include "codegen/lifetimes.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <unordered_map>

namespace prunerc::codegen {

inline constexpr int64_t kSharedAlignment = 128;  // one row of all banks
inline constexpr int64_t kGlobalAlignment = 256;  // what the driver's allocations have

struct GpuStorage {
  /// Of shared buffers: bytes from the start of the block's shared memory. Of global ones: of the
  /// workspace.
  std::unordered_map<ir::BufferId, Extent> extents;
  int64_t workspace_bytes = 0;
};

/// Buffers that never hold values at the same time share bytes. Errors: Unsupported (a shape that
/// is not constant).
Result<GpuStorage> plan_gpu_storage(const ir::Program& lowered);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_GPU_STORAGE_H_
