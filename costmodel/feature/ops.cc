#include "costmodel/feature/ops.h"

#include "ir/equal.h"
#include "ir/visit.h"

namespace prunerc::costmodel {
namespace {

using ir::Expr;
using ir::ExprKind;

struct Term {
  Expr atom;
  Poly factor;
};

/// constant + terms, whose atoms differ.
struct Form {
  std::vector<Term> terms;
  Poly constant;
};

bool is_sum_or_product(Expr e) {
  return e.kind() == ExprKind::kAdd || e.kind() == ExprKind::kSub || e.kind() == ExprKind::kMul;
}

bool compares(Expr e) {
  return e.kind() == ExprKind::kEq || e.kind() == ExprKind::kNe || e.kind() == ExprKind::kLt ||
         e.kind() == ExprKind::kLe;
}

class Counter {
 public:
  Counter(std::span<const Sym> extents, ParamSpace& space, StoreOps* ops)
      : extents_(extents), space_(space), ops_(*ops) {}

  void expr(Expr e) {
    if (e.dtype() == ir::DType::kI64 && is_sum_or_product(e)) {
      Form form;
      add(e, 1, &form);
      linear(form, logical_not(equal(space_.symbol(form.constant), 0)));
    } else if (compares(e) && ir::as_binary(e)->lhs.dtype() == ir::DType::kI64) {
      Form form;
      add(ir::as_binary(e)->lhs, 1, &form);
      add(ir::as_binary(e)->rhs, -1, &form);
      ops_.of_int.compare += 1;
      linear(form, 0);
    } else {
      count(e);
      ir::for_each_child(e, [&](Expr child) { expr(child); });
    }
  }

 private:
  StoreOps::ByType& by_type(Expr e) {
    return ir::is_float(e.dtype()) ? ops_.of_float : ops_.of_int;
  }

  void count(Expr e) {
    switch (e.kind()) {
      case ExprKind::kAdd:
      case ExprKind::kSub: by_type(e).add_sub += 1; return;
      case ExprKind::kMul: by_type(e).mul += 1; return;
      case ExprKind::kDiv:
      case ExprKind::kFloorDiv:
      case ExprKind::kFloorMod: by_type(e).div_mod += 1; return;
      case ExprKind::kMin:
      case ExprKind::kMax: by_type(e).compare += 1; return;
      // What is compared decides, not the truth that comes of it.
      case ExprKind::kEq:
      case ExprKind::kNe:
      case ExprKind::kLt:
      case ExprKind::kLe: by_type(ir::as_binary(e)->lhs).compare += 1; return;
      case ExprKind::kAnd:
      case ExprKind::kOr:
      case ExprKind::kNot: ops_.of_bool += 1; return;
      case ExprKind::kSelect: ops_.select += 1; return;
      case ExprKind::kCall: by_type(e).math += 1; return;
      case ExprKind::kCast:
      case ExprKind::kVar:
      case ExprKind::kTileParam:
      case ExprKind::kIntImm:
      case ExprKind::kFloatImm:
      case ExprKind::kLoad: return;
    }
  }

  void add(Expr e, const Poly& factor, Form* form) {
    const ir::BinaryNode* sides = ir::as_binary(e);
    if (const std::optional<Poly> number = space_.polynomial(e)) {
      form->constant = form->constant + space_.multiply(*number, factor);
      return;
    }
    if (e.kind() == ExprKind::kAdd || e.kind() == ExprKind::kSub) {
      add(sides->lhs, factor, form);
      add(sides->rhs, e.kind() == ExprKind::kSub ? factor * -1 : factor, form);
      return;
    }
    if (e.kind() == ExprKind::kMul) {
      const std::optional<Poly> l = space_.polynomial(sides->lhs),
                                r = space_.polynomial(sides->rhs);
      if (r) return add(sides->lhs, space_.multiply(*r, factor), form);
      if (l) return add(sides->rhs, space_.multiply(*l, factor), form);
    }
    for (Term& term : form->terms) {
      if (!ir::structural_equal(term.atom, e)) continue;
      term.factor = term.factor + factor;
      return;
    }
    form->terms.push_back({e, factor});
  }

  void linear(const Form& form, Sym num_constants) {
    Sym terms = num_constants;
    for (const Term& term : form.terms) {
      const Sym factor = space_.symbol(term.factor);
      Sym counts = logical_not(equal(factor, 0));
      if (const auto* var = term.atom.as<ir::Var>()) {
        counts = logical_and(counts, less(1, extents_[static_cast<std::size_t>(var->id.value)]));
      } else {
        count(term.atom);
        ir::for_each_child(term.atom, [&](Expr child) { expr(child); });
      }
      terms += counts;
      ops_.of_int.mul += logical_and(counts, logical_not(equal(abs(factor), 1)));
    }
    ops_.of_int.add_sub += max(0, terms - 1);
  }

  std::span<const Sym> extents_;
  ParamSpace& space_;
  StoreOps& ops_;
};

}  // namespace

void count_operations(Expr e, std::span<const Sym> extents, ParamSpace& space, StoreOps* ops) {
  Counter(extents, space, ops).expr(e);
}

}  // namespace prunerc::costmodel
