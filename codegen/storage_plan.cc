#include "codegen/storage_plan.h"

#include "ir/visit.h"

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

constexpr int64_t kMaxBufferBytes = int64_t{1} << 46;

int64_t align_up(int64_t n) {
  return (n + kStorageAlignment - 1) / kStorageAlignment * kStorageAlignment;
}

// When a buffer holds values: positions of the first and last statement, loops below its Alloc
// counted as a whole.
struct Lifetime {
  int64_t first = std::numeric_limits<int64_t>::max();
  int64_t last = -1;
  bool in_parallel = false;
  bool overlaps(const Lifetime& other) const { return first <= other.last && other.first <= last; }
};

class Lifetimes {
 public:
  explicit Lifetimes(const Program& program) { visit_stmt(program.root()); }
  const std::vector<BufferId>& order() const { return order_; }
  const Lifetime& of(BufferId id) const { return lifetimes_.at(id); }

 private:
  struct OpenLoop {
    int64_t begin;
    std::vector<BufferId> used;  // buffers from outside that live until its end
  };

  void visit_stmt(Stmt s) {
    if (!s.defined()) return;
    if (const Alloc* alloc = s.as<Alloc>()) return visit_alloc(*alloc);
    if (const Loop* loop = s.as<Loop>()) return visit_loop(*loop);
    ++position_;
    if (const Store* store = s.as<Store>()) use(store->buffer);
    for_each_child(
        s, [&](Stmt child) { visit_stmt(child); },
        [&](Expr e) {
          walk(e, [&](Expr x) {
            if (const Load* load = x.as<Load>()) use(load->buffer);
            return true;
          });
        });
  }

  void visit_alloc(const Alloc& alloc) {
    const auto [it, is_new] = lifetimes_.emplace(alloc.buffer, Lifetime{});
    // The same buffer may be allocated in both versions of a guarded tile.
    if (is_new) order_.push_back(alloc.buffer);
    it->second.in_parallel = num_parallel_ > 0;
    depth_[alloc.buffer] = loops_.size();
    visit_stmt(alloc.body);
  }

  void visit_loop(const Loop& loop) {
    ++position_;
    num_parallel_ += loop.loop_kind == LoopKind::kParallel ? 1 : 0;
    loops_.push_back({position_, {}});
    visit_stmt(loop.body);
    for (BufferId id : loops_.back().used) {
      lifetimes_[id].last = std::max(lifetimes_[id].last, position_);
    }
    loops_.pop_back();
    num_parallel_ -= loop.loop_kind == LoopKind::kParallel ? 1 : 0;
  }

  void use(BufferId id) {
    const auto it = lifetimes_.find(id);
    if (it == lifetimes_.end()) return;  // a parameter
    Lifetime& life = it->second;
    const std::size_t depth = depth_[id];
    const bool in_loop = depth < loops_.size();
    life.first = std::min(life.first, in_loop ? loops_[depth].begin : position_);
    life.last = std::max(life.last, position_);
    if (in_loop) loops_[depth].used.push_back(id);
  }

  int64_t position_ = 0;
  int num_parallel_ = 0;
  std::vector<OpenLoop> loops_;
  std::unordered_map<BufferId, Lifetime> lifetimes_;
  std::unordered_map<BufferId, std::size_t> depth_;  // loops around the Alloc
  std::vector<BufferId> order_;                      // of first Allocs
};

// The lowest offset at which the buffer overlaps none that lives at the same time.
int64_t first_fit(const StoragePlan& plan, const Lifetimes& lifetimes, BufferId id,
                  const Slot& slot) {
  std::vector<Slot> taken;
  for (BufferId other : lifetimes.order()) {
    const auto it = plan.slots.find(other);
    if (it == plan.slots.end() || it->second.place != slot.place) continue;
    if (lifetimes.of(id).overlaps(lifetimes.of(other))) taken.push_back(it->second);
  }
  std::sort(taken.begin(), taken.end(),
            [](const Slot& a, const Slot& b) { return a.offset < b.offset; });
  int64_t offset = 0;
  for (const Slot& t : taken) {
    if (offset + slot.size_bytes <= t.offset) break;
    offset = std::max(offset, t.offset + align_up(t.size_bytes));
  }
  return offset;
}

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
  for (BufferId id : lifetimes.order()) {
    Slot slot;
    PRUNERC_TRY(slot.size_bytes, buffer_bytes(lowered.buffer(id)));
    if (slot.size_bytes <= kMaxStackBufferBytes &&
        stack_bytes + slot.size_bytes <= kMaxStackBytes) {
      stack_bytes += align_up(slot.size_bytes);
    } else {
      slot.place = lifetimes.of(id).in_parallel ? Place::kWorker : Place::kShared;
      slot.offset = first_fit(plan, lifetimes, id, slot);
      int64_t& total =
          slot.place == Place::kWorker ? plan.workspace_bytes_per_worker : plan.workspace_bytes;
      total = std::max(total, slot.offset + align_up(slot.size_bytes));
    }
    plan.slots[id] = slot;
  }
  return plan;
}

}  // namespace prunerc::codegen
