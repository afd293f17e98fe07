// One candidate of a parametric sketch, and the normal form in which it is compared with a replay.
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/visit.h"
#include "schedule/legality/instance_order.h"
#include "schedule/parametric/parametric.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/site.h"

#include <algorithm>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace): this file is about ir nodes throughout

namespace {

// A condition L <= 0, if it is a comparison of integers.
std::optional<Linear> below_zero(IrBuilder& b, Expr condition, const VarRanges& ranges) {
  const BinaryNode* n = as_binary(condition);
  if (n == nullptr || n->lhs.dtype() != DType::kI64) return std::nullopt;
  if (n->kind != ExprKind::kLt && n->kind != ExprKind::kLe) return std::nullopt;
  const Linear form = to_linear(b, n->lhs, ranges) - to_linear(b, n->rhs, ranges) +
                      (n->kind == ExprKind::kLt ? int64_t{1} : int64_t{0});
  return form.overflow || form.has_data ? std::nullopt : std::optional(form);
}

// S + floor(t / d) <= 0 as d*S + t <= d - 1: such sums come in both forms. False if there is no
// such term.
bool multiply_out(IrBuilder& b, Linear* form, const VarRanges& ranges) {
  for (const Term& term : form->terms) {
    const BinaryNode* n = term.degree == 1 ? as_binary(term.atoms[0]) : nullptr;
    if (n == nullptr || n->kind != ExprKind::kFloorDiv || term.coef != 1) continue;
    const std::optional<int64_t> divisor = constant(n->rhs);
    if (!divisor || *divisor < 1) continue;
    const Linear rest = *form - Linear::of(term);
    *form = rest * *divisor + to_linear(b, n->lhs, ranges) + (1 - *divisor);
    return !form->overflow;
  }
  return false;
}

// An atom that has to be 0 for c*atom + rest <= 0, which is taken out of the form; null if there is
// none.
Expr take_zero(Linear* form, const VarRanges& ranges) {
  for (const Term& term : form->terms) {
    const Interval range = term.degree == 1 ? interval_of(term.atoms[0], ranges) : Interval::all();
    if (term.coef <= 0 || range.lo != 0 || range.hi == 0) continue;
    const Linear rest = *form - Linear::of(term);
    const Interval least = interval_of(rest, ranges);
    if (least.lo == Interval::kNoLower || least.lo + term.coef <= 0) continue;
    const Expr atom = term.atoms[0];
    *form = rest;
    return atom;
  }
  return {};
}

// Does fact <= 0 give goal <= 0? With q*goal = p*fact + rest, for the p and q of each term that
// both have, it is enough that rest < q.
bool implies(const Linear& fact, const Linear& goal, const VarRanges& ranges) {
  for (const Term& x : fact.terms) {
    for (const Term& y : goal.terms) {
      if (compare_atoms(x, y) != 0 || (x.coef > 0) != (y.coef > 0)) continue;
      const int64_t p = std::abs(y.coef);
      const int64_t q = std::abs(x.coef);
      if (interval_of(goal * q - fact * p, ranges).hi < q) return true;
    }
  }
  return false;
}

/// Guards without conjuncts that one of the others implies, in one order. Both depend on when
/// numbers took the place of parameters.
class GuardPruner {
 public:
  explicit GuardPruner(IrBuilder& b) : b_(b) {}

  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const VarRanges::Mark mark = ranges_.mark();
    if (const Loop* loop = s.as<Loop>()) ranges_.bind(loop->var, loop->extent);
    if (const Block* block = s.as<Block>()) {
      Block copy = *block;
      copy.guard = prune(block->guard);
      if (!copy.guard.is(block->guard)) s = b_.block(copy);
    } else {
      s = map_children(
          b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
    }
    ranges_.rewind(mark);
    return s;
  }

 private:
  Expr prune(Expr guard) {
    std::vector<Expr> all;
    std::vector<std::optional<Linear>> forms;
    for (Expr e : conjuncts(guard)) add(e, &all, &forms);
    std::vector<bool> dropped(all.size(), false);
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t k = 0; k < all.size() && !dropped[i]; ++k) {
        if (k == i || dropped[k] || !forms[i] || !forms[k]) continue;
        dropped[i] = implies(*forms[k], *forms[i], ranges_);
      }
    }
    std::vector<Expr> kept;
    bool may_reorder = true;  // comparisons of index arithmetic cannot fail
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (!dropped[i]) kept.push_back(all[i]);
      may_reorder = may_reorder && forms[i].has_value();
    }
    if (kept.size() < 2 || !may_reorder) return conjunction(kept);
    // A conjunct may shorten those after it: that, too, shall follow one order.
    const Expr shortened = simplify(b_, conjunction(sorted(kept)), ranges_);
    return constant(shortened) == 1 ? Expr() : conjunction(sorted(conjuncts(shortened)));
  }

  // The condition and its form; where it says that something is 0, that is one of its own.
  void add(Expr e, std::vector<Expr>* all, std::vector<std::optional<Linear>>* forms) {
    std::optional<Linear> form = below_zero(b_, e, ranges_);
    bool changed = false;
    while (form && multiply_out(b_, &*form, ranges_)) changed = true;
    while (form) {
      const Expr zero = take_zero(&*form, ranges_);
      if (!zero.defined()) break;
      changed = true;
      all->push_back(b_.lt(zero, b_.int_imm(1)));
      forms->push_back(below_zero(b_, all->back(), ranges_));
    }
    if (changed && form->is_constant() && form->constant <= 0) return;
    if (changed) e = simplify(b_, b_.le(to_expr(b_, *form), b_.int_imm(0)), ranges_);
    all->push_back(e);
    forms->push_back(form);
  }

  static std::vector<Expr> sorted(std::vector<Expr> all) {
    std::sort(all.begin(), all.end(), [](Expr x, Expr y) { return compare_exprs(x, y) < 0; });
    return all;
  }

  Expr conjunction(const std::vector<Expr>& all) {
    Expr out;
    for (Expr e : all) out = conjoin(b_, out, e);
    return out;
  }

  IrBuilder& b_;
  VarRanges ranges_;
};

/// Without remainders that a guard makes superfluous: (t // d) % m where it says that t < d*m.
class RemainderDropper {
 public:
  explicit RemainderDropper(IrBuilder& b) : b_(b) {}

  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    const VarRanges::Mark mark = ranges_.mark();
    if (const Loop* loop = s.as<Loop>()) ranges_.bind(loop->var, loop->extent);
    if (const Block* block = s.as<Block>()) {
      if (block->guard.defined()) s = go_block(*block);
    } else {
      s = map_children(
          b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
    }
    ranges_.rewind(mark);
    return s;
  }

 private:
  Stmt go_block(const Block& block) {
    const std::vector<Expr> all = conjuncts(block.guard);
    std::vector<Linear> facts;
    Expr guard;
    for (Expr e : all) {
      const std::optional<Linear> form = below_zero(b_, e, ranges_);
      if (form) facts.push_back(*form);
    }
    bool changed = false;
    const auto dropped = [&](Expr e) {
      const Expr r = drop(e, facts);
      changed = changed || !r.is(e);
      return r;
    };
    Block copy = block;
    for (Expr e : all) guard = conjoin(b_, guard, dropped(e));
    copy.guard = guard;
    std::vector<IterVar> iters(block.iters.begin(), block.iters.end());
    for (IterVar& iter : iters) iter.binding = dropped(iter.binding);
    copy.iters = iters;
    return changed ? b_.block(copy) : Stmt(&block);
  }

  Expr drop(Expr e, const std::vector<Linear>& facts) {
    const BinaryNode* n = as_binary(e);
    if (n == nullptr) return e;
    const Expr r = map_children(b_, e, [&](Expr child) { return drop(child, facts); });
    n = as_binary(r);
    const std::optional<int64_t> m = constant(n->rhs);
    if (r.kind() != ExprKind::kFloorMod || !m || *m < 1) return r;
    const BinaryNode* quotient = n->lhs.kind() == ExprKind::kFloorDiv ? as_binary(n->lhs) : nullptr;
    const std::optional<int64_t> d =
        quotient != nullptr ? constant(quotient->rhs) : std::optional<int64_t>(1);
    const Expr t = quotient != nullptr ? quotient->lhs : n->lhs;
    if (!d || *d < 1 || interval_of(t, ranges_).lo < 0) return r;
    const Linear goal = to_linear(b_, t, ranges_) + (1 - *d * *m);
    const bool is_small = std::any_of(facts.begin(), facts.end(), [&](const Linear& fact) {
      return implies(fact, goal, ranges_);
    });
    return is_small && !goal.overflow ? n->lhs : r;
  }

  IrBuilder& b_;
  VarRanges ranges_;
};

// Before simplification, too, which uses one conjunct to shorten another: then neither implies it.
Stmt normalized(IrBuilder& b, Stmt root) {
  const Stmt once = GuardPruner(b).go(simplify(b, GuardPruner(b).go(root)));
  const Stmt fewer = RemainderDropper(b).go(once);
  return fewer.is(once) ? once : GuardPruner(b).go(simplify(b, GuardPruner(b).go(fewer)));
}

/// Puts numbers in the place of parameters.
class Instance {
 public:
  Instance(const Parametric& sketch, std::span<const int64_t> values)
      : sketch_(sketch), values_(values), b_(sketch.program) {}

  Program run() {
    b_.clear_domain();
    for (const Buffer& buffer : sketch_.program.buffers()) shape(buffer);
    Stmt root = sketch_.program.root();
    if (root.defined()) {
      root = map_exprs(b_, root, [&](Expr e) { return substitute_params(b_, e, values_); });
      if (!sketch_.attrs.empty()) root = attributes(root);
    }
    return compact(b_.finish(normalized(b_, root)));
  }

 private:
  void shape(const Buffer& buffer) {
    std::vector<Expr> extents;
    bool changed = false;
    for (Expr extent : buffer.shape) {
      extents.push_back(substitute_params(b_, extent, values_));
      changed = changed || !extents.back().is(extent);
    }
    if (!changed) return;
    Buffer copy = buffer;
    copy.shape = b_.copy(extents);
    b_.set_buffer(copy);
  }

  Stmt attributes(Stmt s) {
    if (!s.defined()) return s;
    s = map_children(
        b_, s, [&](Stmt child) { return attributes(child); }, [](Expr e) { return e; });
    for (const OpenAttr& attr : sketch_.attrs) {
      const Loop* loop = s.as<Loop>();
      const Block* block = s.as<Block>();
      const bool is_owner =
          loop != nullptr ? loop->id == attr.loop : block != nullptr && block->id == attr.block;
      if (is_owner) s = with_attr(b_, s, attr.key, attr.value(values_));
    }
    return s;
  }

  const Parametric& sketch_;
  std::span<const int64_t> values_;
  IrBuilder b_;
};

}  // namespace

Result<Program> instantiate(const Parametric& sketch, std::span<const int64_t> values) {
  PRUNERC_TRY_VOID(check_values(sketch, values));
  return Instance(sketch, values).run();
}

Program normal_form(const Program& program) {
  IrBuilder b(program);
  return compact(b.finish(normalized(b, program.root())));
}

}  // namespace prunerc::schedule
