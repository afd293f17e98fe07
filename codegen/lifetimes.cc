#include "codegen/lifetimes.h"

#include "ir/tensor/bulk_copy.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::codegen {

using namespace ir;

void Lifetimes::visit_stmt(Stmt s) {
  if (!s.defined()) return;
  if (const Alloc* alloc = s.as<Alloc>()) return visit_alloc(*alloc);
  if (const Loop* loop = s.as<Loop>()) return visit_loop(*loop);
  ++position_;
  if (const Store* store = s.as<Store>()) {
    use(store->buffer);
    if (num_bulk_ > 0) filled_.insert(store->buffer);
  }
  for_each_child(
      s, [&](Stmt child) { visit_stmt(child); },
      [&](Expr e) {
        walk(e, [&](Expr x) {
          if (const Load* load = x.as<Load>()) use(load->buffer);
          return true;
        });
      });
}

void Lifetimes::visit_alloc(const Alloc& alloc) {
  const auto [it, is_new] = lifetimes_.emplace(alloc.buffer, Lifetime{});
  // The same buffer may be allocated in both versions of a guarded tile.
  if (is_new) order_.push_back(alloc.buffer);
  it->second.in_parallel = num_parallel_ > 0;
  depth_[alloc.buffer] = loops_.size();
  const int64_t begin = position_;
  visit_stmt(alloc.body);
  if (filled_.count(alloc.buffer) == 0) return;
  Lifetime& life = lifetimes_[alloc.buffer];
  life.first = std::min(life.first, begin);
  life.last = position_;
}

void Lifetimes::visit_loop(const Loop& loop) {
  ++position_;
  num_parallel_ += loop.loop_kind == LoopKind::kParallel ? 1 : 0;
  num_bulk_ += is_bulk_copy(loop) ? 1 : 0;
  loops_.push_back({position_, {}});
  visit_stmt(loop.body);
  for (BufferId id : loops_.back().used) {
    lifetimes_[id].last = std::max(lifetimes_[id].last, position_);
  }
  loops_.pop_back();
  num_parallel_ -= loop.loop_kind == LoopKind::kParallel ? 1 : 0;
  num_bulk_ -= is_bulk_copy(loop) ? 1 : 0;
}

void Lifetimes::use(BufferId id) {
  const auto it = lifetimes_.find(id);
  if (it == lifetimes_.end()) return;  // a parameter
  Lifetime& life = it->second;
  const std::size_t depth = depth_[id];
  const bool in_loop = depth < loops_.size();
  life.first = std::min(life.first, in_loop ? loops_[depth].begin : position_);
  life.last = std::max(life.last, position_);
  if (in_loop) loops_[depth].used.push_back(id);
}

int64_t first_fit(const Lifetimes& lifetimes, std::span<const Extent> placed, BufferId buffer,
                  int64_t size_bytes, int64_t alignment) {
  std::vector<Extent> taken;
  for (const Extent& other : placed) {
    if (lifetimes.of(buffer).overlaps(lifetimes.of(other.buffer))) taken.push_back(other);
  }
  std::sort(taken.begin(), taken.end(),
            [](const Extent& a, const Extent& b) { return a.offset < b.offset; });
  int64_t offset = 0;
  for (const Extent& t : taken) {
    if (offset + size_bytes <= t.offset) break;
    offset = std::max(offset, align_up(t.offset + t.size_bytes, alignment));
  }
  return offset;
}

}  // namespace prunerc::codegen
