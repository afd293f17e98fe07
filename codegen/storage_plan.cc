#include "codegen/storage_plan.h"

#include <algorithm>

#include "ir/visit.h"

namespace prunerc::codegen {
namespace {

using namespace ir;

constexpr int64_t kMaxBufferBytes = int64_t{1} << 46;

int64_t align_up(int64_t n) { return (n + kStorageAlignment - 1) / kStorageAlignment * kStorageAlignment; }

// Bump offsets per part: an Alloc's range starts where the enclosing Allocs of the part end, so siblings share.
struct Planner {
  const Program& program;
  StoragePlan plan;
  int64_t stack_bytes = 0;

  struct Tops {
    int64_t shared = 0;
    int64_t worker = 0;
  };

  Result<void> visit_stmt(Stmt s, bool in_parallel, Tops tops) {
    if (!s.defined()) return {};
    if (const Alloc* alloc = s.as<Alloc>()) {
      PRUNERC_TRY_VOID(place(*alloc, in_parallel, &tops));
      return visit_stmt(alloc->body, in_parallel, tops);
    }
    if (const Loop* loop = s.as<Loop>()) {
      return visit_stmt(loop->body, in_parallel || loop->loop_kind == LoopKind::kParallel, tops);
    }
    if (const Seq* seq = s.as<Seq>()) {
      for (Stmt child : seq->stmts) PRUNERC_TRY_VOID(visit_stmt(child, in_parallel, tops));
    } else if (const If* branch = s.as<If>()) {
      PRUNERC_TRY_VOID(visit_stmt(branch->then_body, in_parallel, tops));
      PRUNERC_TRY_VOID(visit_stmt(branch->else_body, in_parallel, tops));
    }
    return {};
  }

  Result<void> place(const Alloc& alloc, bool in_parallel, Tops* tops) {
    PRUNERC_TRY(const int64_t bytes, buffer_bytes(program.buffer(alloc.buffer)));
    Slot slot;
    slot.size_bytes = bytes;
    // The same buffer may be allocated in both versions of a guarded tile: it keeps its first slot.
    if (plan.slots.count(alloc.buffer) != 0) slot = plan.slots[alloc.buffer];
    const bool small = bytes <= kMaxStackBufferBytes && stack_bytes + bytes <= kMaxStackBytes;
    if (plan.slots.count(alloc.buffer) != 0) {
      int64_t* top = slot.place == Place::kShared ? &tops->shared : &tops->worker;
      if (slot.place != Place::kStack) *top = std::max(*top, slot.offset + align_up(bytes));
      return {};
    }
    if (small) {
      stack_bytes += align_up(bytes);
    } else if (in_parallel) {
      slot.place = Place::kWorker;
      slot.offset = tops->worker;
      tops->worker += align_up(bytes);
      plan.workspace_bytes_per_worker = std::max(plan.workspace_bytes_per_worker, tops->worker);
    } else {
      slot.place = Place::kShared;
      slot.offset = tops->shared;
      tops->shared += align_up(bytes);
      plan.workspace_bytes = std::max(plan.workspace_bytes, tops->shared);
    }
    plan.slots[alloc.buffer] = slot;
    return {};
  }
};

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
  Planner planner{lowered, {}, 0};
  PRUNERC_TRY_VOID(planner.visit_stmt(lowered.root(), false, {}));
  return std::move(planner.plan);
}

}  // namespace prunerc::codegen
