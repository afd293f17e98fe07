// Conditions leave the unrolled tiles of a thread, since each copy of one costs NVRTC as much as
// several multiplications.
//
// Some vanish. If every store into an element of the registers R stands behind row < M, elements
// with row >= M are never set, so nobody may read them, and setting them changes nothing:
//     for r { for k { for c {
//       if row(r) < M && col(c) < N && k < K { R[r, c] = R[r, c] + A[r, k]*B[k, c] } } } }
// ~>  for r { for k { for c { if k < K { R[r, c] = R[r, c] + A[r, k]*B[k, c] } } } }
// where A and B have those elements at all: their tiles in shared memory do, a matrix does not.
// What they hold there may never have been written, which IR has no meaning for. So this is done to
// what is printed, after everything that IR is checked for, like the conditions of shuffles.
//
// The others go outwards as far as they do not change:
// ~>  for r { for k { if k < K { for c { R[r, c] = R[r, c] + A[r, k]*B[k, c] } } } }
#include "codegen/cuda/drop_guards.h"

#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "ir/analysis/carried.h"
#include "ir/arith/prove.h"
#include "ir/tensor/intrinsic.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <map>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

/// Conditions are many, and most are decided by normal forms.
constexpr ProveOptions kEffort = {.max_points = 4096};

// A store into registers, with what stands between the registers' Alloc and it.
struct GuardedStore {
  const Store* store;
  std::vector<const Loop*> loops;
  std::vector<Expr> guards;
};

class RegisterStores {
 public:
  RegisterStores(const IrBuilder& b, const Alloc& alloc) : buffer_(alloc.buffer) {
    if (b.buffer(buffer_).scope == Scope::kLocal) find(alloc.body);
  }
  const std::vector<GuardedStore>& all() const { return all_; }
  /// False if a tensor instruction may set an element as well.
  bool known() const { return known_; }

 private:
  void find(Stmt s) {
    if (!s.defined()) return;
    const std::size_t num_loops = loops_.size(), num_guards = guards_.size();
    if (const Loop* loop = s.as<Loop>()) {
      loops_.push_back(loop);
      known_ = known_ && !(tensor_of(*loop) && stored_buffers(s).count(buffer_) != 0);
    }
    const Store* store = s.as<Store>();
    if (store != nullptr && store->buffer == buffer_) all_.push_back({store, loops_, guards_});
    if (const If* branch = s.as<If>()) {
      for (Expr c : conjuncts(branch->condition)) guards_.push_back(c);
      find(branch->then_body);
      guards_.resize(num_guards);
      find(branch->else_body);
    } else {
      for_each_child(
          s, [&](Stmt child) { find(child); }, [](Expr) {});
    }
    loops_.resize(num_loops);
    guards_.resize(num_guards);
  }

  BufferId buffer_;
  std::vector<GuardedStore> all_;
  std::vector<const Loop*> loops_;
  std::vector<Expr> guards_;
  bool known_ = true;
};

class RegisterGuards {
 public:
  explicit RegisterGuards(const Program& program) : b_(program) {
    for (std::size_t i = 0; i < 2; ++i) order_[i] = b_.fresh_var("order");
  }

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const VarRanges::Mark mark = ranges_.mark();
    if (const Loop* loop = s.as<Loop>()) {
      if (tensor_of(*loop)) return s;
      ranges_.bind(loop->var, loop->extent);
    }
    if (const Alloc* alloc = s.as<Alloc>()) {
      stores_.emplace(alloc->buffer, RegisterStores(b_, *alloc));
      outside_.emplace(alloc->buffer, ranges_);
    }
    Stmt r = s;
    if (const If* branch = s.as<If>(); branch != nullptr && !branch->else_body.defined()) {
      r = go_branch(*branch);
    } else {
      r = map_stmts(b_, s, [&](Stmt child) { return go(child); });
    }
    ranges_.rewind(mark);
    return r;
  }

  Stmt go_branch(const If& branch) {
    std::vector<Expr> kept = conjuncts(branch.condition);
    for (std::size_t i = kept.size(); i-- > 0;) {
      std::vector<Expr> fewer = kept;
      fewer.erase(fewer.begin() + static_cast<std::ptrdiff_t>(i));
      if (is_dead(kept[i], branch.then_body) && stays_inside(branch.then_body, fewer)) kept = fewer;
    }
    const VarRanges::Mark mark = ranges_.mark();
    for (Expr c : kept) ranges_.assume(c);
    Stmt body = go(branch.then_body);
    ranges_.rewind(mark);
    if (kept.size() == conjuncts(branch.condition).size()) {
      return body.is(branch.then_body) ? Stmt(&branch) : b_.if_then(branch.condition, body);
    }
    return if_all(b_, kept, body);
  }

  // Where the condition fails, does s set nothing but registers that no store reaches?
  bool is_dead(Expr condition, Stmt s) {
    const Expr fails = negated(condition);
    if (!fails.defined()) return false;
    bool dead = true;
    walk(
        s,
        [&](Stmt x) {
          if (const Store* store = x.as<Store>()) dead = dead && is_dead_store(fails, *store);
          return dead;
        },
        [](Expr) {});
    return dead;
  }

  Expr negated(Expr condition) {
    const BinaryNode* node = as_binary(condition);
    if (node == nullptr || node->lhs.dtype() != DType::kI64 || has_load(condition)) return {};
    if (condition.kind() == ExprKind::kLt) return b_.le(node->rhs, node->lhs);
    if (condition.kind() == ExprKind::kLe) return b_.lt(node->rhs, node->lhs);
    return {};
  }

  bool is_dead_store(Expr fails, const Store& store) {
    const auto found = stores_.find(store.buffer);
    if (found == stores_.end() || !found->second.known() || found->second.all().empty()) {
      return false;
    }
    const std::vector<GuardedStore>& all = found->second.all();
    return std::all_of(all.begin(), all.end(), [&](const GuardedStore& mine) {
      if (mine.store != &store) return true;
      const Touch from = touch(mine, {fails}, 0);
      return std::all_of(all.begin(), all.end(), [&](const GuardedStore& other) {
        return share_element(from, touch(other, other.guards, 1), PointOrder::kBefore,
                             outside_.at(store.buffer), kEffort) == Proof::kNo;
      });
    });
  }

  // The elements that are set where the conditions hold. All of those with `rank` 0 come before all
  // of those with 1: the question is about every pair.
  Touch touch(const GuardedStore& stored, std::vector<Expr> conditions, int64_t rank) {
    Touch out{
        {{order_[rank], b_.int_imm(2)}}, {}, std::move(conditions), {stored.store->buffer, {}}};
    out.conditions.push_back(b_.le(order_[rank], b_.int_imm(rank)));
    out.conditions.push_back(b_.le(b_.int_imm(rank), order_[rank]));
    // More iterations than there are only ask for more.
    for (const Loop* loop : stored.loops) {
      const Interval length = interval_of(loop->extent, outside_.at(stored.store->buffer));
      out.inner.push_back({loop->var, length.is_bounded() ? b_.int_imm(length.hi) : loop->extent});
    }
    for (Expr index : stored.store->indices) out.region.box.push_back({index, b_.int_imm(1)});
    return out;
  }

  // Is every element that s touches one of its buffer, and nothing divided by what it reads, under
  // these conditions alone?
  bool stays_inside(Stmt s, const std::vector<Expr>& conditions) {
    const VarRanges::Mark mark = ranges_.mark();
    for (Expr c : conditions) ranges_.assume(c);
    const bool inside = stays_inside(s);
    ranges_.rewind(mark);
    return inside;
  }

  bool stays_inside(Stmt s) {
    if (const Loop* loop = s.as<Loop>()) ranges_.bind(loop->var, loop->extent);
    bool inside = s.as<If>() == nullptr;  // conditions below are asked about by themselves
    if (const Store* store = s.as<Store>()) {
      inside = is_in_shape(b_, store->buffer, store->indices, ranges_);
    }
    for_each_child(
        s, [&](Stmt child) { inside = inside && stays_inside(child); },
        [&](Expr value) {
          inside = inside && !may_trap(value);
          walk(value, [&](Expr e) {
            if (const Load* load = e.as<Load>()) {
              inside = inside && is_in_shape(b_, load->buffer, load->indices, ranges_);
            }
            return inside;
          });
        });
    return inside;
  }

  IrBuilder b_;
  VarRanges ranges_;
  const Var* order_[2] = {};
  std::map<BufferId, RegisterStores> stores_;
  std::map<BufferId, VarRanges> outside_;  // ranges around the Alloc
};

// Takes conditions out of loops that they do not change in. Thread loops keep theirs: whether
// threads meet must not depend on them.
Stmt hoist(IrBuilder& b, Stmt s) {
  if (!s.defined()) return s;
  // Registers of a fragment are two loops directly in each other.
  const Loop* fragment = s.as<Loop>();
  if (fragment != nullptr && attr_of(*fragment, kFragmentAttr)) return s;
  Stmt r = map_stmts(b, s, [&](Stmt child) { return hoist(b, child); });
  const Loop* loop = r.as<Loop>();
  if (loop == nullptr || is_block_axis(loop->loop_kind) || !loop->attrs.empty()) return r;
  const If* branch = loop->body.as<If>();
  if (branch == nullptr || branch->else_body.defined() || has_thread_loop(r)) return r;
  // A tensor instruction is matched with its loops as they are.
  if (tensor_of(*loop)) return r;
  Expr outer, inner;
  for (Expr c : conjuncts(branch->condition)) {
    const bool stays = mentions(c, loop->var->id) || has_load(c) || may_trap(c);
    Expr& side = stays ? inner : outer;
    side = conjunction(b, side, c);
  }
  if (!outer.defined()) return r;
  Loop changed = *loop;
  changed.body = inner.defined() ? b.if_then(inner, branch->then_body) : branch->then_body;
  return b.if_then(outer, b.loop(changed));
}

}  // namespace

bool is_in_shape(IrBuilder& b, BufferId id, std::span<const Expr> indices,
                 const VarRanges& ranges) {
  const Buffer& buffer = b.buffer(id);
  for (std::size_t d = 0; d < indices.size(); ++d) {
    // Ranges leave out what a divisor of 0 gives.
    if (may_trap(indices[d])) return false;
    if (prove_less_equal(b.int_imm(0), indices[d], ranges, kEffort) != Proof::kYes ||
        prove_less(indices[d], buffer.shape[d], ranges, kEffort) != Proof::kYes) {
      return false;
    }
  }
  return true;
}

Program drop_guards(const Program& lowered) {
  const Program fewer = RegisterGuards(lowered).run(lowered);
  IrBuilder b(fewer);
  const Stmt root = hoist(b, fewer.root());
  return root.is(fewer.root()) ? fewer : b.finish(root);
}

}  // namespace prunerc::codegen
