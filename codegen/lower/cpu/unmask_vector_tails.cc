// Whole vectors run in the tail of a tile, where what the masked lanes would write is dead.
// Before: the lanes of the last vector stand under a condition. After: where nobody reads what the
// others would write, all of them run where the first one does; loads that they may not do are 0.
//     alloc T { for i in 16 vectorized { if i < 12 { T[i] = A[k + i] } }  .. }
// ~>  alloc T { for i in 16 vectorized { T[i] = select(i < 12, A[k + i], 0f32) }  .. }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/cpu/dead_tail.h"
#include "codegen/lower/passes.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/tensor/intrinsic.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

class TailUnmasking {
 public:
  explicit TailUnmasking(const Program& program) : b_(program) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  /// Of a buffer: what lies at `end` or beyond in its innermost dimension is dead.
  struct Tail {
    Linear end;
    int num_unmasked = 0;  // stores so far
  };

  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    if (const Loop* loop = s.as<Loop>()) return go_loop(*loop, s);
    if (const Alloc* alloc = s.as<Alloc>(); alloc != nullptr && lanes_ == nullptr) {
      return go_alloc(*alloc, s);
    }
    const If* branch = s.as<If>();
    if (branch == nullptr || lanes_ == nullptr) return children(s);
    if (const Stmt unmasked = unmask(*branch); unmasked.defined()) return unmasked;
    const bool depends = mentions(branch->condition, lanes_->var->id);
    num_lane_conditions_ += depends ? 1 : 0;
    const Stmt r = children(s);
    num_lane_conditions_ -= depends ? 1 : 0;
    return r;
  }

  Stmt go_alloc(const Alloc& alloc, Stmt s) {
    const std::optional<DeadTail> found =
        refused_.contains(&alloc) ? std::nullopt : find_dead_tail(b_, alloc, ranges_);
    if (!found) return children(s);
    const std::map<BufferId, Tail> before = dead_;
    dead_.insert_or_assign(alloc.buffer, Tail{found->end});
    Stmt r = children(s);
    const bool is_whole = dead_.at(alloc.buffer).num_unmasked == found->num_stores;
    dead_.erase(alloc.buffer);
    if (is_whole) return r;
    // Where some lanes stay unwritten, none may be read.
    refused_.insert(&alloc);
    dead_ = before;
    return children(s);
  }

  Stmt go_loop(const Loop& loop, Stmt s) {
    if (tensor_of(loop)) return s;
    const VarRanges::Mark mark = ranges_.mark();
    const Loop* const outer = lanes_;
    const bool depends = lanes_ != nullptr && mentions(loop.extent, lanes_->var->id);
    ranges_.bind(loop.var, loop.extent);
    if (loop.loop_kind == LoopKind::kVectorized && lanes_ == nullptr) lanes_ = &loop;
    num_lane_conditions_ += depends ? 1 : 0;
    const Stmt r = children(s);
    num_lane_conditions_ -= depends ? 1 : 0;
    lanes_ = outer;
    ranges_.rewind(mark);
    return r;
  }

  Stmt children(Stmt s) {
    return map_stmts(b_, s, [&](Stmt child) { return go(child); });
  }

  // The branch for a whole vector: it runs where its first lane does. Null if a lane that it left
  // out could be seen, or if anything else depends on the lane.
  Stmt unmask(const If& branch) {
    if (branch.else_body.defined() || num_lane_conditions_ > 0) return {};
    Expr kept;
    std::vector<Expr> dropped;
    for (Expr c : conjuncts(branch.condition)) {
      Expr stays = c;
      if (mentions(c, lanes_->var->id)) {
        const std::optional<Linear> d = difference_of(b_, c, ranges_);
        if (!d || !grows_with_lanes(*d) || !only_dead(branch.then_body, *d)) return {};
        dropped.push_back(c);
        const VarMap first = {{lanes_->var->id, b_.int_imm(0)}};
        stays = simplify(b_, substitute(b_, c, first), ranges_);
      }
      const IntImm* decided = stays.as<IntImm>();
      if (decided != nullptr && decided->value == 0) return {};
      if (decided != nullptr) continue;
      kept = conjunction(b_, kept, stays);
    }
    if (dropped.empty()) return {};
    Stmt body = branch.then_body;
    for (Expr c : dropped) body = without(body, c);
    count_stores(body);
    return kept.defined() ? b_.if_then(kept, body) : body;
  }

  // The lane variable stands in one term, which it makes larger.
  bool grows_with_lanes(const Linear& d) const {
    int64_t step = 0;
    for (const Term& term : d.terms) {
      if (!mentions(term.factors(), lanes_->var->id)) continue;
      if (step != 0 || term.degree != 1 || term.atoms[0].as<Var>() == nullptr) return false;
      step = term.coef;
    }
    return step > 0;
  }

  bool is_dead(BufferId id, std::span<const Expr> indices, const Linear& d) {
    const auto it = dead_.find(id);
    if (it == dead_.end()) return false;
    const std::size_t last = innermost_dim(b_.buffer(id));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (i != last && mentions(indices[i], lanes_->var->id)) return false;
    }
    return to_linear(b_, indices[last], ranges_) - d == it->second.end;
  }

  // Does s do nothing but store what is dead where d >= 0?
  bool only_dead(Stmt s, const Linear& d) {
    if (const Store* store = s.as<Store>()) return is_dead(store->buffer, store->indices, d);
    const Seq* seq = s.as<Seq>();
    return seq != nullptr && std::all_of(seq->stmts.begin(), seq->stmts.end(),
                                         [&](Stmt child) { return only_dead(child, d); });
  }

  void count_stores(Stmt s) {
    if (const Store* store = s.as<Store>()) ++dead_.at(store->buffer).num_unmasked;
    for_each_child(
        s, [&](Stmt child) { count_stores(child); }, [](Expr) {});
  }

  // The stores with loads that need the condition made to depend on it.
  Stmt without(Stmt s, Expr condition) {
    const Store* store = s.as<Store>();
    if (store == nullptr) {
      return map_stmts(b_, s, [&](Stmt child) { return without(child, condition); });
    }
    const Linear d = *difference_of(b_, condition, ranges_);
    const Expr value = may_trap(store->value) ? guarded(store->value, condition)
                                              : safe(store->value, condition, d, true);
    return value.is(store->value) ? s : b_.store(store->buffer, store->indices, value);
  }

  // `is_uniform`: the first lane comes here as well.
  Expr safe(Expr e, Expr condition, const Linear& d, bool is_uniform) {
    if (const Load* load = e.as<Load>()) {
      return is_safe(*load, d, is_uniform) ? e : guarded(e, condition);
    }
    // Lazy operands: the first lane may not come to them.
    const bool is_lazy =
        e.kind() == ExprKind::kSelect || e.kind() == ExprKind::kAnd || e.kind() == ExprKind::kOr;
    const bool all = is_uniform && !(is_lazy && mentions(e, lanes_->var->id));
    return map_children(b_, e, [&](Expr child) { return safe(child, condition, d, all); });
  }

  Expr guarded(Expr e, Expr condition) {
    return b_.select(condition, e, b_.constant(0, e.dtype()));
  }

  // What the first lane loads as well, dead lanes of a row that is there, or an input's element.
  bool is_safe(const Load& load, const Linear& d, bool is_uniform) {
    const bool is_like_first =
        !mentions(load.indices, lanes_->var->id) || is_dead(load.buffer, load.indices, d);
    if (is_uniform && is_like_first) return true;
    const Buffer& buffer = b_.buffer(load.buffer);
    if (buffer.role != BufferRole::kInput) return false;
    for (std::size_t i = 0; i < load.indices.size(); ++i) {
      const IntImm* extent = buffer.shape[i].as<IntImm>();
      if (extent == nullptr || has_load(load.indices[i])) return false;
      const Interval at = interval_of(to_linear(b_, load.indices[i], ranges_), ranges_);
      if (!Interval{0, extent->value - 1}.contains(at)) return false;
    }
    return true;
  }

  IrBuilder b_;
  VarRanges ranges_;
  const Loop* lanes_ = nullptr;  // the vectorized loop around
  int num_lane_conditions_ = 0;  // Ifs and loops inside of it that depend on the lane
  std::map<BufferId, Tail> dead_;
  std::set<const Alloc*> refused_;  // some lanes stay unwritten
};

}  // namespace

Result<Program> unmask_vector_tails(const Program& program, const Target&) {
  return TailUnmasking(program).run(program);
}

}  // namespace prunerc::codegen
