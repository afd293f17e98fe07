#include "codegen/gpu_storage.h"

#include "codegen/storage_plan.h"
#include "ir/tensor/bulk_copy.h"
#include "ir/visit.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <vector>

namespace prunerc::codegen {

using namespace ir;

std::optional<BufferId> buffer_named_by(const Attr& attr, std::string_view prefix) {
  if (!attr.key.starts_with(prefix)) return std::nullopt;
  const std::string_view number = attr.key.substr(prefix.size());
  int32_t id = 0;
  const char* const end = number.data() + number.size();
  const auto read = std::from_chars(number.data(), end, id);
  return read.ec == std::errc() && read.ptr == end ? std::optional(BufferId(id)) : std::nullopt;
}

Result<std::map<BufferId, int64_t>> find_swizzles(const Program& lowered) {
  std::map<BufferId, int64_t> out;
  walk(
      lowered.root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        if (loop == nullptr) return true;
        for (const Attr& attr : loop->attrs) {
          const std::optional<BufferId> id = buffer_named_by(attr, kSwizzleAttr);
          if (id && lowered.buffer(*id).scope == Scope::kShared) out[*id] = attr.value;
        }
        return true;
      },
      [](Expr) {});
  for (auto& [id, bytes] : out) {
    const Buffer& buffer = lowered.buffer(id);
    const IntImm* columns = buffer.shape.empty() ? nullptr : buffer.shape.back().as<IntImm>();
    const int64_t panel = panel_of(bytes);
    if (panel == 0 || columns == nullptr || buffer.shape.size() < 2 ||
        columns->value * byte_size(buffer.dtype) % panel != 0) {
      return error(Diag::kSwizzleForm, std::string(buffer.name), bytes,
                   std::string("the rows of its tile are not whole panels"));
    }
    bytes = panel;
  }
  return out;
}

Result<GpuStorage> plan_gpu_storage(const Program& lowered) {
  const Lifetimes lifetimes(lowered);
  GpuStorage storage;
  PRUNERC_TRY(storage.swizzles, find_swizzles(lowered));
  std::vector<Extent> shared, global;
  // Of shared memory the largest first: small ones fit between.
  const auto shared_bytes = [&](BufferId id) {
    const bool is_shared = lowered.buffer(id).scope == Scope::kShared;
    const Result<int64_t> bytes = buffer_bytes(lowered.buffer(id));
    return is_shared && bytes.ok() ? *bytes : 0;
  };
  std::vector<BufferId> order = lifetimes.order();
  std::stable_sort(order.begin(), order.end(),
                   [&](BufferId x, BufferId y) { return shared_bytes(x) > shared_bytes(y); });
  for (const BufferId id : order) {
    const Buffer& buffer = lowered.buffer(id);
    if (buffer.scope == Scope::kLocal) continue;
    const bool is_shared = buffer.scope == Scope::kShared;
    int64_t alignment = is_shared ? kSharedAlignment : kGlobalAlignment;
    if (const auto it = storage.swizzles.find(id); it != storage.swizzles.end()) {
      alignment = std::max(alignment, kSwizzleRows * it->second);
    }
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
