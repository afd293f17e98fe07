#include "codegen/lower/analysis/alloc_points.h"

#include "codegen/lower/analysis/statements.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <map>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

// Does the block hand values on from one iteration of the loop to the next? Blocks of a grid that
// have elements of their own do not, though where their sums begin may depend on their number.
bool carries(const Block& block, const Loop& loop) {
  const auto counts = [&](bool spatial) {
    return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
      return (iter.kind == IterKind::kSpatial) == spatial && mentions(iter.binding, loop.var->id);
    });
  };
  return counts(false) && !(is_block_axis(loop.loop_kind) && counts(true));
}

// Where each intermediate is touched, as the loops around, outermost first.
class AllocPointFinder {
 public:
  explicit AllocPointFinder(const Program& program) : program_(program) {}

  AllocPoints run() {
    visit_stmt(program_.root());
    return std::move(common_);
  }

 private:
  using Loops = std::vector<const Loop*>;

  void visit_stmt(Stmt s) {
    if (!s.defined()) return;
    if (const Loop* loop = s.as<Loop>()) {
      loops_.push_back(loop);
      visit_stmt(loop->body);
      loops_.pop_back();
      return;
    }
    if (const Block* block = s.as<Block>()) return visit_block(*block);
    if (const Store* store = s.as<Store>()) {
      // Outside of blocks nothing says which loops carry values.
      touch(store->buffer, block_ == nullptr ? 0 : carried_);
    }
    for_each_child(
        s, [&](Stmt child) { visit_stmt(child); }, [&](Expr e) { visit_expr(e); });
  }

  void visit_expr(Expr e) {
    walk(e, [&](Expr x) {
      if (const Load* load = x.as<Load>()) touch(load->buffer, loops_.size());
      return true;
    });
  }

  void visit_block(const Block& block) {
    const Block* const saved_block = std::exchange(block_, &block);
    const std::size_t saved_carried = carried_;
    if (saved_block == nullptr) carried_ = loops_.size();
    for (std::size_t i = 0; i < std::min(carried_, loops_.size()); ++i) {
      if (carries(block, *loops_[i])) carried_ = i;
    }
    for (const IterVar& iter : block.iters) {
      // The binding may go through iteration variables of the block around: all of its loops may
      // carry.
      if (saved_block != nullptr && iter.kind != IterKind::kSpatial)
        carried_ = std::min(carried_, saved_carried);
    }
    if (block.guard.defined()) visit_expr(block.guard);
    visit_stmt(block.init);
    visit_stmt(block.body);
    block_ = saved_block;
    carried_ = saved_carried;
  }

  // The Alloc may be at most inside the first `depth` of the loops around, and not inside a
  // vectorized one.
  void touch(BufferId id, std::size_t depth) {
    if (program_.buffer(id).role != BufferRole::kIntermediate) return;
    depth = std::min(depth, loops_.size());
    for (std::size_t i = 0; i < depth; ++i) {
      if (loops_[i]->loop_kind == LoopKind::kVectorized) depth = i;
    }
    Loops here(loops_.begin(), loops_.begin() + static_cast<std::ptrdiff_t>(depth));
    const auto [it, is_new] = common_.emplace(id, here);
    if (is_new) return;
    Loops& common = it->second;
    std::size_t n = 0;
    while (n < common.size() && n < here.size() && common[n] == here[n]) ++n;
    common.resize(n);
  }

  const Program& program_;
  Loops loops_;
  const Block* block_ = nullptr;
  std::size_t carried_ = 0;  // number of outer loops that carry nothing in what the block writes
  AllocPoints common_;
};

class AllocInsertion {
 public:
  AllocInsertion(IrBuilder& b, const AllocPoints& points) : b_(b) {
    for (const auto& [id, loops] : points) {
      (loops.empty() ? at_root_ : at_loop_[loops.back()->id]).push_back(id);
    }
  }

  Stmt run(Stmt root) { return wrap(at_root_, rebuild(root)); }

 private:
  Stmt wrap(const std::vector<BufferId>& buffers, Stmt body) {
    if (!body.defined()) return body;
    for (std::size_t i = buffers.size(); i-- > 0;) body = b_.alloc(buffers[i], body);
    return body;
  }

  Stmt rebuild(Stmt s) {
    if (!s.defined()) return s;
    Stmt r = map_stmts(b_, s, [&](Stmt child) { return rebuild(child); });
    const Loop* loop = r.as<Loop>();
    if (loop == nullptr) return r;
    const auto it = at_loop_.find(loop->id);
    if (it == at_loop_.end()) return r;
    Loop changed = *loop;
    changed.body = wrap(it->second, loop->body);
    return b_.loop(changed);
  }

  IrBuilder& b_;
  std::map<LoopId, std::vector<BufferId>> at_loop_;
  std::vector<BufferId> at_root_;
};

}  // namespace

AllocPoints find_alloc_points(const Program& program) { return AllocPointFinder(program).run(); }

Stmt insert_allocs(IrBuilder& b, const Program& program, const AllocPoints& points) {
  return AllocInsertion(b, points).run(program.root());
}

}  // namespace prunerc::codegen
