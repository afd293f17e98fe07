#include "codegen/storage_plan.h"

#include "codegen/lifetimes.h"

#include <algorithm>
#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

constexpr int64_t kMaxBufferBytes = int64_t{1} << 46;

}  // namespace

Result<int64_t> buffer_elems(const Buffer& buffer) {
  int64_t elems = 1;
  for (Expr extent : buffer.shape) {
    const IntImm* imm = extent.as<IntImm>();
    if (imm == nullptr) {
      return error(Diag::kUnsupported, "compiling buffer '" + std::string(buffer.name) +
                                           "', whose shape is not constant,");
    }
    if (imm->value < 1 || __builtin_mul_overflow(elems, imm->value, &elems) ||
        elems > kMaxBufferBytes) {
      return error(Diag::kUnsupported, "the size of buffer '" + std::string(buffer.name) + "'");
    }
  }
  return elems;
}

Result<int64_t> buffer_bytes(const Buffer& buffer) {
  PRUNERC_TRY(const int64_t elems, buffer_elems(buffer));
  const int64_t bytes = elems * byte_size(buffer.dtype);
  if (bytes > kMaxBufferBytes) {
    return error(Diag::kUnsupported, "the size of buffer '" + std::string(buffer.name) + "'");
  }
  return bytes;
}

Result<StoragePlan> plan_storage(const Program& lowered) {
  const Lifetimes lifetimes(lowered);
  StoragePlan plan;
  int64_t stack_bytes = 0;
  std::vector<Extent> shared, worker;
  for (BufferId id : lifetimes.order()) {
    Slot slot;
    PRUNERC_TRY(slot.size_bytes, buffer_bytes(lowered.buffer(id)));
    if (slot.size_bytes <= kMaxStackBufferBytes &&
        stack_bytes + slot.size_bytes <= kMaxStackBytes) {
      stack_bytes += align_up(slot.size_bytes, kStorageAlignment);
    } else {
      const bool in_parallel = lifetimes.of(id).in_parallel;
      slot.place = in_parallel ? Place::kWorker : Place::kShared;
      std::vector<Extent>& placed = in_parallel ? worker : shared;
      slot.offset = first_fit(lifetimes, placed, id, slot.size_bytes, kStorageAlignment);
      placed.push_back({id, slot.offset, slot.size_bytes});
      int64_t& total = in_parallel ? plan.workspace_bytes_per_worker : plan.workspace_bytes;
      total = std::max(total, slot.offset + align_up(slot.size_bytes, kStorageAlignment));
    }
    plan.slots[id] = slot;
  }
  return plan;
}

}  // namespace prunerc::codegen
