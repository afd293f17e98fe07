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

/// One loop that moves an index: digits of equal loops give equal elements.
struct Digit {
  int64_t step = 0, extent = 0;
  bool is_lane = false;
  auto operator<=>(const Digit&) const = default;
};

/// One load or store of a buffer below its Alloc.
struct Access {
  bool is_store = false;
  bool may_fill = false;    // in lanes, for a store that could lose its guard
  int lane_conditions = 0;  // around it that depend on the lane
  Linear last;              // the index of the last dimension
  int64_t most = 0;
  std::vector<Linear> ends;  // a guard lets it run only where last < end
  /// What moves `last` below the Alloc, by step; none: not as a number of digits.
  std::optional<std::vector<Digit>> digits;
  Linear rest;  // of `last`, besides them
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
      const Loop* const outer = lanes_;
      expr(loop->extent);
      ranges_.bind(loop->var, loop->extent);
      inside_.insert(loop->var->id);
      const bool depends = on_lane(loop->extent);
      if (loop->loop_kind == LoopKind::kVectorized && lanes_ == nullptr) lanes_ = loop;
      // Lanes that run for another time are no guard of ours.
      conditioned(depends ? 2 : 0, [&] { stmt(loop->body); });
      lanes_ = outer;
      ranges_.rewind(mark);
    } else if (const If* branch = s.as<If>()) {
      expr(branch->condition);
      int of_then = 0;
      for (Expr c : conjuncts(branch->condition)) of_then += on_lane(c) ? 1 : 0;
      guarded(branch->condition, [&] { conditioned(of_then, [&] { stmt(branch->then_body); }); });
      conditioned(of_then > 0 ? 2 : 0, [&] { stmt(branch->else_body); });
    } else {
      if (const Store* store = s.as<Store>()) {
        for_intermediate_ = b_.buffer(store->buffer).role == BufferRole::kIntermediate;
        access(store->buffer, store->indices, true);
      }
      for_each_child(
          s, [&](Stmt child) { stmt(child); }, [&](Expr e) { expr(e); });
      for_intermediate_ = false;
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

  template <typename F>
  void conditioned(int more, F&& body) {
    lane_conditions_ += more;
    body();
    lane_conditions_ -= more;
  }

  bool on_lane(Expr e) const { return lanes_ != nullptr && mentions(e, lanes_->var->id); }

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
    // The lane moves along the last dimension and no other.
    if (indices.empty() || has_load(indices.back()) ||
        std::any_of(indices.begin(), indices.end() - 1, [&](Expr e) { return on_lane(e); })) {
      ok = false;
      return;
    }
    Access a;
    a.is_store = is_store;
    a.lane_conditions = lane_conditions_;
    a.may_fill = lanes_ != nullptr && for_intermediate_;
    a.last = to_linear(b_, indices.back(), ranges_);
    a.most = interval_of(a.last, ranges_).hi;
    for (const Linear& d : guards_) {
      const Linear end = a.last - d;
      if (!end.overflow && !mentions_any(end, inside_)) a.ends.push_back(end);
    }
    read_digits(&a);
    accesses.push_back(std::move(a));
  }

  void read_digits(Access* a) const {
    std::vector<Digit> digits;
    a->rest = Linear::of(a->last.constant);
    for (const Term& term : a->last.terms) {
      if (!mentions_any(Linear::of(term), inside_)) {
        a->rest = a->rest + Linear::of(term);
        continue;
      }
      const Var* var = term.degree == 1 ? term.atoms[0].as<Var>() : nullptr;
      const Expr extent = var == nullptr ? Expr() : ranges_.extent(var->id);
      if (!extent.defined() || extent.as<IntImm>() == nullptr) return;
      const int64_t n = extent.as<IntImm>()->value;
      const bool is_lane = lanes_ != nullptr && var->id == lanes_->var->id;
      if (n > 1) digits.push_back({term.coef, n, is_lane});
    }
    std::sort(digits.begin(), digits.end());
    int64_t span = 1;
    for (const Digit& d : digits) {
      if (d.step < span) return;
      span += d.step * (d.extent - 1);
    }
    a->digits = std::move(digits);
  }

  IrBuilder& b_;
  VarRanges& ranges_;
  const BufferId buffer_;
  const Loop* lanes_ = nullptr;    // the vectorized loop around
  bool for_intermediate_ = false;  // the store around
  int lane_conditions_ = 0;
  std::set<VarId> inside_;      // loops below the Alloc
  std::vector<Linear> guards_;  // differences below 0
};

class LaneFilling {
 public:
  explicit LaneFilling(const Program& program) : b_(program) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  /// A buffer of which nobody reads what lies at `end` or beyond in its last dimension.
  struct Spare {
    Linear end;
    int num_filled = 0;  // stores so far
  };

  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    if (const Loop* loop = s.as<Loop>()) return go_loop(*loop, s);
    if (const Alloc* alloc = s.as<Alloc>(); alloc != nullptr && lanes_ == nullptr) {
      return go_alloc(*alloc, s);
    }
    const If* branch = s.as<If>();
    if (branch == nullptr || lanes_ == nullptr) return children(s);
    if (const Stmt filled = fill(*branch); filled.defined()) return filled;
    const bool depends = mentions(branch->condition, lanes_->var->id);
    num_lane_conditions_ += depends ? 1 : 0;
    const Stmt r = children(s);
    num_lane_conditions_ -= depends ? 1 : 0;
    return r;
  }

  Stmt go_alloc(const Alloc& alloc, Stmt s) {
    int num_guarded = 0;
    const std::optional<Linear> end =
        refused_.contains(&alloc) ? std::nullopt : spare_end(alloc, &num_guarded);
    if (!end) return children(s);
    const std::map<BufferId, Spare> before = spare_;
    spare_.insert_or_assign(alloc.buffer, Spare{*end});
    Stmt r = children(s);
    const bool is_whole = spare_.at(alloc.buffer).num_filled == num_guarded;
    spare_.erase(alloc.buffer);
    if (is_whole) return r;
    // Where some lanes stay unwritten, none may be read.
    refused_.insert(&alloc);
    spare_ = before;
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
    return map_children(
        b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
  }

  // The number from which on, along the last dimension, nobody reads the buffer: each load stays
  // below it or is guarded so. Stores, and loads that may lose their guard, go through the same
  // elements in the same vectors, for which there is room: a lane that is read has been written.
  std::optional<Linear> spare_end(const Alloc& alloc, int* num_guarded) {
    const Buffer& buffer = b_.buffer(alloc.buffer);
    const IntImm* row = buffer.shape.empty() ? nullptr : buffer.shape.back().as<IntImm>();
    if (row == nullptr) return {};
    AccessReader reader(b_, ranges_, alloc.buffer);
    reader.stmt(alloc.body);
    if (!reader.ok) return {};
    for (const Access& first : reader.accesses) {
      if (!first.is_store || !first.digits || first.most >= row->value) continue;
      if (std::none_of(first.digits->begin(), first.digits->end(),
                       [](const Digit& d) { return d.is_lane; })) {
        continue;
      }
      for (const Linear& end : first.ends) {
        const auto respects = [&](const Access& a) {
          const bool is_below = end.is_constant() && a.most < end.constant;
          if (!a.is_store && (is_below || !is_guarded(a, end))) return is_below;
          if (a.is_store && a.lane_conditions != (is_guarded(a, end) ? 1 : 0)) return false;
          const bool is_like_first = a.digits == first.digits && a.rest == first.rest;
          return is_like_first || !(a.is_store || a.may_fill);
        };
        if (!std::all_of(reader.accesses.begin(), reader.accesses.end(), respects)) continue;
        *num_guarded = static_cast<int>(
            std::count_if(reader.accesses.begin(), reader.accesses.end(),
                          [&](const Access& a) { return a.is_store && is_guarded(a, end); }));
        return end;
      }
    }
    return {};
  }

  static bool is_guarded(const Access& a, const Linear& end) {
    return std::find(a.ends.begin(), a.ends.end(), end) != a.ends.end();
  }

  // The branch for a whole vector: it runs where its first lane does. Null if a lane that it left
  // out could be seen, or if anything else depends on the lane.
  Stmt fill(const If& branch) {
    if (branch.else_body.defined() || num_lane_conditions_ > 0) return {};
    Expr kept;
    std::vector<Expr> dropped;
    for (Expr c : conjuncts(branch.condition)) {
      Expr stays = c;
      if (mentions(c, lanes_->var->id)) {
        const std::optional<Linear> d = difference_of(b_, c, ranges_);
        if (!d || !grows_with_lanes(*d) || !only_spare(branch.then_body, *d)) return {};
        dropped.push_back(c);
        const VarMap first = {{lanes_->var->id, b_.int_imm(0)}};
        stays = simplify(b_, substitute(b_, c, first), ranges_);
      }
      const IntImm* decided = stays.as<IntImm>();
      if (decided != nullptr && decided->value == 0) return {};
      if (decided != nullptr) continue;
      kept = kept.defined() ? b_.logical_and(kept, stays) : stays;
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

  bool is_spare(BufferId id, std::span<const Expr> indices, const Linear& d) {
    const auto it = spare_.find(id);
    return it != spare_.end() && !mentions(indices.first(indices.size() - 1), lanes_->var->id) &&
           to_linear(b_, indices.back(), ranges_) - d == it->second.end;
  }

  // Are there but stores of what nobody reads where d >= 0?
  bool only_spare(Stmt s, const Linear& d) {
    if (const Store* store = s.as<Store>()) return is_spare(store->buffer, store->indices, d);
    const Seq* seq = s.as<Seq>();
    return seq != nullptr && std::all_of(seq->stmts.begin(), seq->stmts.end(),
                                         [&](Stmt child) { return only_spare(child, d); });
  }

  void count_stores(Stmt s) {
    if (const Store* store = s.as<Store>()) ++spare_.at(store->buffer).num_filled;
    for_each_child(
        s, [&](Stmt child) { count_stores(child); }, [](Expr) {});
  }

  // The stores with loads that need the condition made to depend on it.
  Stmt without(Stmt s, Expr condition) {
    const Store* store = s.as<Store>();
    if (store == nullptr) {
      return map_children(
          b_, s, [&](Stmt child) { return without(child, condition); }, [](Expr e) { return e; });
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

  // What the first lane loads as well, spare lanes of a row that is there, or an input's element.
  bool is_safe(const Load& load, const Linear& d, bool is_uniform) {
    const bool is_like_first =
        !mentions(load.indices, lanes_->var->id) || is_spare(load.buffer, load.indices, d);
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

  // A division of whole numbers whose divisor is not known.
  static bool may_trap(Expr e) {
    bool found = false;
    walk(e, [&](Expr x) {
      const BinaryNode* node = as_binary(x);
      const bool divides =
          node != nullptr && (x.kind() == ExprKind::kFloorDiv || x.kind() == ExprKind::kFloorMod);
      found = found || (divides && node->rhs.as<IntImm>() == nullptr);
      return !found;
    });
    return found;
  }

  IrBuilder b_;
  VarRanges ranges_;
  const Loop* lanes_ = nullptr;  // the vectorized loop around
  int num_lane_conditions_ = 0;  // Ifs and loops inside of it that depend on the lane
  std::map<BufferId, Spare> spare_;
  std::set<const Alloc*> refused_;  // some lanes stay unwritten
};

}  // namespace

Result<Program> fill_lanes(const Program& program, const Target&) {
  return LaneFilling(program).run(program);
}

}  // namespace prunerc::codegen
