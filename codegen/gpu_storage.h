// Where the intermediates of lowered kernels live: offsets in shared memory and in the workspace.
#ifndef PRUNERC_CODEGEN_GPU_STORAGE_H_
#define PRUNERC_CODEGEN_GPU_STORAGE_H_

#include "codegen/lifetimes.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <unordered_map>

namespace prunerc::codegen {

inline constexpr int64_t kSharedAlignment = 128;  // one row of all banks
inline constexpr int64_t kGlobalAlignment = 256;  // what the driver's allocations have

/// Of the loop around the Alloc of a shared buffer, followed by the buffer's number: bytes of rows
/// that are swizzled (ir/tensor/bulk_copy.h, panel_of); factor << 32 | offset of the stride of its rows.
inline constexpr std::string_view kSwizzleAttr = "swizzle_";
inline constexpr std::string_view kAlignAttr = "align_";
/// The buffer whose number follows the prefix, if the attribute is of that form.
std::optional<ir::BufferId> buffer_named_by(const ir::Attr& attr, std::string_view prefix);
/// Bytes between which no swizzle moves anything.
inline constexpr int64_t kSwizzleLine = 128;
/// Bytes that every swizzle keeps together.
inline constexpr int64_t kSwizzlePiece = 16;

struct GpuStorage {
  /// Of shared buffers: bytes from the start of the block's shared memory. Of global ones: of the
  /// workspace.
  std::unordered_map<ir::BufferId, Extent> extents;
  int64_t workspace_bytes = 0;
  /// Of shared buffers that have one: the bytes of a panel's row.
  std::map<ir::BufferId, int64_t> swizzles;
};

/// The buffers that are to be swizzled. Errors: SwizzleForm (rows that are not whole panels).
Result<std::map<ir::BufferId, int64_t>> find_swizzles(const ir::Program& lowered);

/// Buffers that never hold values at the same time share bytes. Errors: Unsupported (a shape that
/// is not constant), SwizzleForm.
Result<GpuStorage> plan_gpu_storage(const ir::Program& lowered);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_GPU_STORAGE_H_
