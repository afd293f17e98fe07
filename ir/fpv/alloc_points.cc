#include "ir/fpv/alloc_points.h"

#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace prunerc::ir {
namespace {

using Loops = std::vector<const Loop*>;

class AllocPointFinder {
 public:
  explicit AllocPointFinder(const Program& program) : program_(program) {}

  std::unordered_map<BufferId, Loops> run() {
    stmt(program_.root());
    for (BufferId id : allocated_) common_.erase(id);
    return std::move(common_);
  }

 private:
  void stmt(Stmt s) {
    if (!s.defined()) return;
    if (const Loop* loop = s.as<Loop>()) {
      loops_.push_back(loop);
      stmt(loop->body);
      loops_.pop_back();
      return;
    }
    if (const Block* b = s.as<Block>()) return block(*b);
    if (const Alloc* alloc = s.as<Alloc>()) allocated_.insert(alloc->buffer);
    if (const Store* store = s.as<Store>()) touch(store->buffer, in_block_ ? carried_ : 0);
    for_each_child(
        s, [&](Stmt child) { stmt(child); }, [&](Expr e) { expr(e); });
  }

  void expr(Expr e) {
    walk(e, [&](Expr x) {
      if (const Load* load = x.as<Load>()) touch(load->buffer, loops_.size());
      return true;
    });
  }

  void block(const Block& b) {
    const bool was_in_block = std::exchange(in_block_, true);
    const std::size_t was_carried = carried_;
    if (!was_in_block) carried_ = loops_.size();
    for (const IterVar& iter : b.iters) {
      if (iter.kind == IterKind::kSpatial) continue;
      for (std::size_t i = 0; i < std::min(carried_, loops_.size()); ++i) {
        if (mentions(iter.binding, loops_[i]->var->id)) carried_ = i;
      }
      // A binding may go through iteration variables of the block around.
      if (was_in_block) carried_ = std::min(carried_, was_carried);
    }
    if (b.guard.defined()) expr(b.guard);
    stmt(b.init);
    stmt(b.body);
    in_block_ = was_in_block;
    carried_ = was_carried;
  }

  void touch(BufferId id, std::size_t depth) {
    if (program_.buffer(id).role != BufferRole::kIntermediate) return;
    depth = std::min(depth, loops_.size());
    for (std::size_t i = 0; i < depth; ++i) {
      if (loops_[i]->loop_kind == LoopKind::kVectorized) depth = i;
    }
    const Loops here(loops_.begin(), loops_.begin() + static_cast<std::ptrdiff_t>(depth));
    const auto [at, is_new] = common_.emplace(id, here);
    if (is_new) return;
    Loops& common = at->second;
    std::size_t n = 0;
    while (n < common.size() && n < here.size() && common[n] == here[n]) ++n;
    common.resize(n);
  }

  const Program& program_;
  Loops loops_;
  bool in_block_ = false;
  std::size_t carried_ = 0;
  std::unordered_map<BufferId, Loops> common_;
  std::unordered_set<BufferId> allocated_;
};

}  // namespace

std::unordered_map<BufferId, Loops> find_alloc_points(const Program& program) {
  return AllocPointFinder(program).run();
}

}  // namespace prunerc::ir
