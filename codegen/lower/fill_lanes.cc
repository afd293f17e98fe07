#include "codegen/lower/lower.h"
#include "codegen/lower/util.h"
#include "ir/analysis/linear.h"
#include "ir/analysis/simplify.h"
#include "ir/map.h"
#include "ir/tensor/intrinsic.h"
#include "ir/visit.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

/// A condition as `difference < 0`; nullopt if it is no comparison by order.
std::optional<Linear> difference_of(IrBuilder& b, Expr condition, const VarRanges& ranges) {
  const BinaryNode* node = as_binary(condition);
  if (node == nullptr || node->lhs.dtype() != DType::kI64 || has_load(condition)) return {};
  if (node->kind != ExprKind::kLt && node->kind != ExprKind::kLe) return {};
  const Linear out = to_linear(b, node->lhs, ranges) - to_linear(b, node->rhs, ranges);
  return node->kind == ExprKind::kLe ? out + int64_t{-1} : out;
}

bool mentions_any(const Linear& linear, const std::set<VarId>& vars) {
  std::set<VarId> found;
  for (const Term& term : linear.terms) {
    for (Expr atom : term.factors()) collect_vars(atom, &found);
  }
  return std::any_of(found.begin(), found.end(), [&](VarId v) { return vars.count(v) > 0; });
}

/// One load or store of a buffer below its Alloc.
struct Access {
  bool is_store = false;
  Linear last;  // the index of the last dimension
  int64_t most = 0;
  std::vector<Linear> ends;  // a guard lets it run only where last < end
};

// Collects the accesses of one buffer below its Alloc.
class AccessReader {
 public:
  AccessReader(IrBuilder& b, VarRanges& ranges, BufferId buffer)
      : b_(b), ranges_(ranges), buffer_(buffer) {}

  bool ok = true;
  std::vector<Access> accesses;

  void stmt(Stmt s) {
    if (!s.defined() || !ok) return;
    if (const Loop* loop = s.as<Loop>()) {
      const VarRanges::Mark mark = ranges_.mark();
      expr(loop->extent);
      ranges_.bind(loop->var, loop->extent);
      inside_.insert(loop->var->id);
      stmt(loop->body);
      ranges_.rewind(mark);
    } else if (const If* branch = s.as<If>()) {
      expr(branch->condition);
      guarded(branch->condition, [&] { stmt(branch->then_body); });
      stmt(branch->else_body);
    } else {
      if (const Store* store = s.as<Store>()) access(store->buffer, store->indices, true);
      for_each_child(
          s, [&](Stmt child) { stmt(child); }, [&](Expr e) { expr(e); });
    }
  }

 private:
  template <typename F>
  void guarded(Expr condition, F&& body) {
    const std::size_t before = guards_.size();
    for (Expr c : conjuncts(condition)) {
      if (std::optional<Linear> d = difference_of(b_, c, ranges_)) guards_.push_back(*d);
    }
    body();
    guards_.resize(before);
  }

  void expr(Expr e) {
    if (const Select* select = e.as<Select>()) {
      expr(select->condition);
      guarded(select->condition, [&] { expr(select->on_true); });
      return expr(select->on_false);
    }
    if (const Load* load = e.as<Load>()) access(load->buffer, load->indices, false);
    for_each_child(e, [&](Expr child) { expr(child); });
  }

  void access(BufferId id, std::span<const Expr> indices, bool is_store) {
    if (id != buffer_) return;
    if (indices.empty() || has_load(indices.back())) {
      ok = false;
      return;
    }
    Access a;
    a.is_store = is_store;
    a.last = to_linear(b_, indices.back(), ranges_);
    a.most = interval_of(a.last, ranges_).hi;
    for (const Linear& d : guards_) {
      const Linear end = a.last - d;
      if (!end.overflow && !mentions_any(end, inside_)) a.ends.push_back(end);
    }
    accesses.push_back(std::move(a));
  }

  IrBuilder& b_;
  VarRanges& ranges_;
  const BufferId buffer_;
  std::set<VarId> inside_;      // loops below the Alloc
  std::vector<Linear> guards_;  // differences below 0
};

class LaneFilling {
 public:
  explicit LaneFilling(const Program& program) : program_(program), b_(program) {}

  Program run() { return b_.finish(go(program_.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    if (const Loop* loop = s.as<Loop>()) return go_loop(*loop, s);
    if (const Alloc* alloc = s.as<Alloc>(); alloc != nullptr && lanes_ == nullptr) {
      const std::optional<Linear> end = spare_end(*alloc);
      if (end) ends_.insert_or_assign(alloc->buffer, *end);
      const Stmt r = children(s);
      ends_.erase(alloc->buffer);
      return r;
    }
    if (const If* branch = s.as<If>(); branch != nullptr && lanes_ != nullptr) {
      if (const Stmt filled = fill(*branch); filled.defined()) return filled;
    }
    return children(s);
  }

  Stmt go_loop(const Loop& loop, Stmt s) {
    if (tensor_of(loop)) return s;
    const VarRanges::Mark mark = ranges_.mark();
    const Loop* const outer = lanes_;
    ranges_.bind(loop.var, loop.extent);
    if (loop.loop_kind == LoopKind::kVectorized && lanes_ == nullptr) lanes_ = &loop;
    const Stmt r = children(s);
    lanes_ = outer;
    ranges_.rewind(mark);
    return r;
  }

  Stmt children(Stmt s) {
    return map_children(
        b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
  }

  // The number from which on, along the last dimension, nobody reads the buffer: each load stays
  // below it or is guarded so, and the guarded accesses all have room for whole vectors.
  std::optional<Linear> spare_end(const Alloc& alloc) {
    const Buffer& buffer = b_.buffer(alloc.buffer);
    const IntImm* row = buffer.shape.empty() ? nullptr : buffer.shape.back().as<IntImm>();
    if (row == nullptr) return {};
    AccessReader reader(b_, ranges_, alloc.buffer);
    reader.stmt(alloc.body);
    if (!reader.ok) return {};
    for (const Access& first : reader.accesses) {
      if (!first.is_store) continue;
      for (const Linear& end : first.ends) {
        const bool holds = first.most < row->value &&
                           std::all_of(reader.accesses.begin(), reader.accesses.end(),
                                       [&](const Access& a) { return respects(a, end, first); });
        if (holds) return end;
      }
    }
    return {};
  }

  static bool respects(const Access& a, const Linear& end, const Access& first) {
    if (end.is_constant() && a.most < end.constant) return true;
    const bool is_guarded = std::find(a.ends.begin(), a.ends.end(), end) != a.ends.end();
    return is_guarded ? a.most == first.most : a.is_store;
  }

  // The branch for a whole vector: it runs where its first lane does. Null if a lane that it left
  // out could be seen.
  Stmt fill(const If& branch) {
    if (branch.else_body.defined()) return {};
    Expr kept;
    std::vector<Expr> dropped;
    for (Expr c : conjuncts(branch.condition)) {
      const std::optional<Linear> d = difference_of(b_, c, ranges_);
      Expr stays = c;
      if (d && grows_with_lanes(*d) && only_spare(branch.then_body, *d)) {
        dropped.push_back(c);
        const VarMap first = {{lanes_->var->id, b_.int_imm(0)}};
        stays = simplify(b_, substitute(b_, c, first), ranges_);
      }
      if (stays.as<IntImm>() != nullptr && stays.as<IntImm>()->value == 1) continue;
      kept = kept.defined() ? b_.logical_and(kept, stays) : stays;
    }
    if (dropped.empty()) return {};
    Stmt body = branch.then_body;
    for (Expr c : dropped) body = without(body, c);
    body = go(body);
    return kept.defined() ? b_.if_then(kept, body) : body;
  }

  bool grows_with_lanes(const Linear& d) const {
    return std::any_of(d.terms.begin(), d.terms.end(), [&](const Term& term) {
      const Var* var = term.degree == 1 ? term.atoms[0].as<Var>() : nullptr;
      return var != nullptr && var->id == lanes_->var->id && term.coef > 0;
    });
  }

  bool is_spare(BufferId id, std::span<const Expr> indices, const Linear& d) {
    const auto it = ends_.find(id);
    return it != ends_.end() && !mentions(indices.first(indices.size() - 1), lanes_->var->id) &&
           to_linear(b_, indices.back(), ranges_) - d == it->second;
  }

  // Does s store nothing but what nobody reads where d >= 0?
  bool only_spare(Stmt s, const Linear& d) {
    if (const Store* store = s.as<Store>()) return is_spare(store->buffer, store->indices, d);
    if (s.as<Alloc>() != nullptr || s.as<Loop>() != nullptr) return false;
    bool all = true;
    for_each_child(
        s, [&](Stmt child) { all = all && only_spare(child, d); }, [](Expr) {});
    return all;
  }

  // s with loads that need the condition made to depend on it.
  Stmt without(Stmt s, Expr condition) {
    const Linear d = *difference_of(b_, condition, ranges_);
    if (const Store* store = s.as<Store>()) {
      Expr value = may_trap(store->value) ? guarded(store->value, condition)
                                          : safe(store->value, condition, d);
      return value.is(store->value) ? s : b_.store(store->buffer, store->indices, value);
    }
    return map_children(
        b_, s, [&](Stmt child) { return without(child, condition); },
        [&](Expr e) { return has_load(e) ? safe(e, condition, d) : e; });
  }

  Expr safe(Expr e, Expr condition, const Linear& d) {
    if (const Load* load = e.as<Load>()) return is_safe(*load, d) ? e : guarded(e, condition);
    return map_children(b_, e, [&](Expr child) { return safe(child, condition, d); });
  }

  Expr guarded(Expr e, Expr condition) {
    return b_.select(condition, e, b_.constant(0, e.dtype()));
  }

  // What the first lane loads as well, spare lanes of a row that is there, or an input's element.
  bool is_safe(const Load& load, const Linear& d) {
    if (!mentions(load.indices, lanes_->var->id) || is_spare(load.buffer, load.indices, d)) {
      return true;
    }
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

  static bool may_trap(Expr e) {
    bool found = false;
    walk(e, [&](Expr x) {
      const BinaryNode* node = as_binary(x);
      const bool divides = node != nullptr && !is_float(x.dtype()) &&
                           (x.kind() == ExprKind::kFloorDiv || x.kind() == ExprKind::kFloorMod ||
                            x.kind() == ExprKind::kDiv);
      found = found || (divides && node->rhs.as<IntImm>() == nullptr);
      return !found;
    });
    return found;
  }

  const Program& program_;
  IrBuilder b_;
  VarRanges ranges_;
  const Loop* lanes_ = nullptr;      // the vectorized loop around
  std::map<BufferId, Linear> ends_;  // of buffers with spare lanes
};

}  // namespace

Result<Program> fill_lanes(const Program& program, const Target&) {
  return LaneFilling(program).run();
}

}  // namespace prunerc::codegen
