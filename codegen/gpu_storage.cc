#include "codegen/gpu_storage.h"

#include "codegen/storage_plan.h"

#include <algorithm>
#include <vector>

namespace prunerc::codegen {

using namespace ir;

Result<GpuStorage> plan_gpu_storage(const Program& lowered) {
  const Lifetimes lifetimes(lowered);
  GpuStorage storage;
  std::vector<Extent> shared, global;
  for (BufferId id : lifetimes.order()) {
    const Buffer& buffer = lowered.buffer(id);
    if (buffer.scope == Scope::kLocal) continue;
    const bool is_shared = buffer.scope == Scope::kShared;
    const int64_t alignment = is_shared ? kSharedAlignment : kGlobalAlignment;
    std::vector<Extent>& placed = is_shared ? shared : global;
    Extent extent{id, 0, 0};
    PRUNERC_TRY(extent.size_bytes, buffer_bytes(buffer));
    extent.offset = first_fit(lifetimes, placed, id, extent.size_bytes, alignment);
    placed.push_back(extent);
    storage.extents[id] = extent;
    if (is_shared) continue;
    storage.workspace_bytes =
        std::max(storage.workspace_bytes, align_up(extent.offset + extent.size_bytes, alignment));
  }
  return storage;
}

}  // namespace prunerc::codegen
