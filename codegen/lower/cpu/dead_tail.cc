#include "codegen/lower/cpu/dead_tail.h"

#include "codegen/lower/analysis/statements.h"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

namespace prunerc::codegen {

using namespace ir;

namespace {

bool any_var_in(const Linear& linear, const std::set<VarId>& vars) {
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
  Linear last;              // the index of the innermost dimension
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
      : b_(b), ranges_(ranges), buffer_(buffer), last_(innermost_dim(b.buffer(buffer))) {}

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
    // The lane moves along the innermost dimension and no other.
    ok = ok && !indices.empty() && !has_load(indices[last_]);
    for (std::size_t d = 0; d < indices.size(); ++d)
      ok = ok && (d == last_ || !on_lane(indices[d]));
    if (!ok) return;
    Access a;
    a.is_store = is_store;
    a.lane_conditions = lane_conditions_;
    a.may_fill = lanes_ != nullptr && for_intermediate_;
    a.last = to_linear(b_, indices[last_], ranges_);
    a.most = interval_of(a.last, ranges_).hi;
    for (const Linear& d : guards_) {
      const Linear end = a.last - d;
      if (!end.overflow && !any_var_in(end, inside_)) a.ends.push_back(end);
    }
    read_digits(&a);
    accesses.push_back(std::move(a));
  }

  void read_digits(Access* a) const {
    std::vector<Digit> digits;
    a->rest = Linear::of(a->last.constant);
    for (const Term& term : a->last.terms) {
      if (!any_var_in(Linear::of(term), inside_)) {
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
  const std::size_t last_;         // its innermost dimension
  const Loop* lanes_ = nullptr;    // the vectorized loop around
  bool for_intermediate_ = false;  // the store around
  int lane_conditions_ = 0;
  std::set<VarId> inside_;      // loops below the Alloc
  std::vector<Linear> guards_;  // differences below 0
};

bool is_guarded(const Access& a, const Linear& end) {
  return std::find(a.ends.begin(), a.ends.end(), end) != a.ends.end();
}

// Nobody reads what lies at `end` or beyond: loads stay below it or are guarded so. Stores, and
// loads that may lose their guard, go through the same elements in the same vectors as `like`: a
// lane that is read has been written.
bool respects(const Access& a, const Linear& end, const Access& like) {
  const bool is_below = end.is_constant() && a.most < end.constant;
  if (!a.is_store && (is_below || !is_guarded(a, end))) return is_below;
  if (a.is_store && a.lane_conditions != (is_guarded(a, end) ? 1 : 0)) return false;
  const bool is_alike = a.digits == like.digits && a.rest == like.rest;
  return is_alike || !(a.is_store || a.may_fill);
}

bool goes_by_vectors(const Access& a) {
  return a.digits &&
         std::any_of(a.digits->begin(), a.digits->end(), [](const Digit& d) { return d.is_lane; });
}

}  // namespace

std::optional<Linear> difference_of(IrBuilder& b, Expr condition, const VarRanges& ranges) {
  const BinaryNode* node = as_binary(condition);
  if (node == nullptr || node->lhs.dtype() != DType::kI64 || has_data(condition)) return {};
  if (node->kind != ExprKind::kLt && node->kind != ExprKind::kLe) return {};
  const Linear out = to_linear(b, node->lhs, ranges) - to_linear(b, node->rhs, ranges);
  return node->kind == ExprKind::kLe ? out + int64_t{-1} : out;
}

std::optional<DeadTail> find_dead_tail(IrBuilder& b, const Alloc& alloc, VarRanges& ranges) {
  const Buffer& buffer = b.buffer(alloc.buffer);
  if (buffer.shape.empty()) return {};
  const std::optional<int64_t> row = constant_value(buffer.shape[innermost_dim(buffer)]);
  if (!row) return {};
  AccessReader reader(b, ranges, alloc.buffer);
  reader.stmt(alloc.body);
  if (!reader.ok) return {};
  const std::vector<Access>& all = reader.accesses;
  for (const Access& like : all) {
    // Room for whole vectors.
    if (!like.is_store || !goes_by_vectors(like) || like.most >= *row) continue;
    for (const Linear& end : like.ends) {
      const auto is_fine = [&](const Access& a) { return respects(a, end, like); };
      if (!std::all_of(all.begin(), all.end(), is_fine)) continue;
      const auto num_stores = std::count_if(all.begin(), all.end(), [&](const Access& a) {
        return a.is_store && is_guarded(a, end);
      });
      return DeadTail{end, static_cast<int>(num_stores)};
    }
  }
  return {};
}

}  // namespace prunerc::codegen
