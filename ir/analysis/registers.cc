#include "ir/analysis/registers.h"

#include "ir/map.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace prunerc::ir {
namespace {

class Finder {
 public:
  Finder(IrBuilder& b, const Program& program) : b_(b), program_(program) {}

  Registers run() {
    stmt(program_.root());
    Registers out;
    for (RegisterUse& use : uses_) {
      if (is_shared(use)) out.alloc_points.emplace(use.buffer, alloc_points_.at(use.buffer));
    }
    for (RegisterUse& use : uses_) {
      if (out.alloc_points.count(use.buffer) > 0) out.uses.push_back(std::move(use));
    }
    return out;
  }

 private:
  // Several threads, or kernels, may have the buffer.
  bool is_shared(const RegisterUse& use) {
    if (allocated_.count(use.buffer) > 0) alloc_points_.at(use.buffer).clear();
    const std::size_t own = alloc_points_.at(use.buffer).size();
    for (std::size_t i = own; i < use.path.size(); ++i) {
      if (is_thread_axis(use.path[i]->loop_kind)) return true;
    }
    return false;
  }

  void stmt(Stmt s) {
    if (!s.defined()) return;
    if (const Loop* loop = s.as<Loop>()) {
      loops_.push_back(loop);
      stmt(loop->body);
      loops_.pop_back();
    } else if (const Block* n = s.as<Block>()) {
      block(*n);
    } else if (const Store* store = s.as<Store>()) {
      for (Expr index : store->indices) loads(index);
      loads(store->value);
      add(store->buffer, store->indices, /*writes=*/true);
    } else if (const If* branch = s.as<If>()) {
      loads(branch->condition);
      conditions_.push_back(substitute(b_, branch->condition, bindings_));
      stmt(branch->then_body);
      conditions_.pop_back();
      stmt(branch->else_body);
    } else {
      if (const Alloc* alloc = s.as<Alloc>()) allocated_.insert(alloc->buffer);
      for_each_child(
          s, [&](Stmt child) { stmt(child); }, [](Expr) {});
    }
  }

  void block(const Block& n) {
    const Block* const around = std::exchange(block_, &n);
    const std::size_t was_carried = carried_;
    if (around == nullptr) carried_ = loops_.size();
    for (const IterVar& iter : n.iters) {
      loads(iter.binding);
      if (iter.kind == IterKind::kSpatial) continue;
      for (std::size_t i = 0; i < std::min(carried_, loops_.size()); ++i) {
        if (mentions(iter.binding, loops_[i]->var->id)) carried_ = i;
      }
    }
    if (n.guard.defined()) {
      loads(n.guard);
      conditions_.push_back(substitute(b_, n.guard, bindings_));
    }
    VarMap inner = bindings_;
    for (const IterVar& iter : n.iters) {
      inner[iter.var->id] = substitute(b_, iter.binding, bindings_);
    }
    std::swap(inner, bindings_);
    stmt(n.init);
    stmt(n.body);
    std::swap(inner, bindings_);
    if (n.guard.defined()) conditions_.pop_back();
    block_ = around;
    carried_ = was_carried;
  }

  void loads(Expr e) {
    walk(e, [&](Expr x) {
      if (const Load* load = x.as<Load>()) add(load->buffer, load->indices, /*writes=*/false);
      return true;
    });
  }

  void add(BufferId id, std::span<const Expr> indices, bool writes) {
    const Buffer& buffer = program_.buffer(id);
    if (buffer.scope != Scope::kLocal || buffer.role != BufferRole::kIntermediate) return;
    RegisterUse use;
    use.buffer = id;
    use.writes = writes;
    use.path = loops_;
    // A value that a reduction carries on must outlive the iterations of its loops.
    use.depth = !writes ? loops_.size() : block_ != nullptr ? std::min(carried_, loops_.size()) : 0;
    for (std::size_t i = 0; i < use.depth; ++i) {
      if (loops_[i]->loop_kind == LoopKind::kVectorized) use.depth = i;
    }
    use.conditions = conditions_;
    for (Expr index : indices) use.element.push_back(substitute(b_, index, bindings_));
    for (const Loop* loop : loops_) {
      use.combined.push_back(writes && block_ != nullptr && is_lane_axis(loop->loop_kind) &&
                             reduces_over(*block_, *loop));
    }
    join_alloc_point(use);
    uses_.push_back(std::move(use));
  }

  void join_alloc_point(const RegisterUse& use) {
    const std::vector<const Loop*> here(use.path.begin(),
                                        use.path.begin() + static_cast<std::ptrdiff_t>(use.depth));
    const auto [at, is_new] = alloc_points_.emplace(use.buffer, here);
    std::vector<const Loop*>& loops = at->second;
    const auto end = std::mismatch(loops.begin(), loops.end(), here.begin(), here.end()).first;
    loops.erase(end, loops.end());
  }

  IrBuilder& b_;
  const Program& program_;
  std::vector<const Loop*> loops_;
  std::vector<Expr> conditions_;
  VarMap bindings_;  // of blocks' variables
  const Block* block_ = nullptr;
  std::size_t carried_ = 0;  // loops outside of the first one that the block around reduces over
  std::vector<RegisterUse> uses_;
  RegisterAllocPoints alloc_points_;
  std::unordered_set<BufferId> allocated_;
};

}  // namespace

std::size_t kernel_of(const std::vector<const Loop*>& path) {
  const auto at = std::find_if(path.begin(), path.end(),
                               [](const Loop* loop) { return is_thread_axis(loop->loop_kind); });
  return static_cast<std::size_t>(at - path.begin());
}

Registers find_registers(IrBuilder& b, const Program& program) { return Finder(b, program).run(); }

}  // namespace prunerc::ir
