#include "ir/interp/bounded_eval.h"

#include "ir/interp/evaluate.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace prunerc::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

int64_t BoundedEval::position(BufferId buffer, std::span<const Expr> indices,
                              const std::vector<int64_t>& shape) {
  int64_t flat = 0;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    const int64_t at = index(indices[d]);
    if (at < 0 || at >= shape[d]) {
      fail(error(Diag::kInterpOutOfBounds, at, static_cast<int64_t>(d),
                 std::string(program_.buffer(buffer).name)));
    }
    if (failure_.has_value()) return -1;
    flat = flat * shape[d] + at;
  }
  return flat;
}

int64_t BoundedEval::index(Expr e) {
  if (const Var* v = e.as<Var>()) return var(v->id.value);
  if (const IntImm* c = e.as<IntImm>()) return c->value;
  if (const Add* a = e.as<Add>()) return wrapping_add(index(a->lhs), index(a->rhs));
  if (const Mul* m = e.as<Mul>()) return wrapping_mul(index(m->lhs), index(m->rhs));
  const Bounded value = eval(e);
  if (value.error > 0) fail(error(Diag::kUnsupported, std::string("an index made of floats")));
  return value.integer;
}

Bounded BoundedEval::compare(const BinaryNode& n, const Bounded& a, const Bounded& b) {
  const bool floats = is_float(n.lhs.dtype());
  const int order = floats ? (a.value < b.value   ? -1
                              : a.value > b.value ? 1
                                                  : 0)
                           : (a.integer < b.integer   ? -1
                              : a.integer > b.integer ? 1
                                                      : 0);
  const bool unordered = floats && (std::isnan(a.value) || std::isnan(b.value));
  const double slack = a.error + b.error;
  const bool uncertain = slack > 0 && !(std::fabs(a.value - b.value) > slack);
  bool result = false;
  if (n.kind == ExprKind::kEq) result = order == 0 && !unordered;
  if (n.kind == ExprKind::kNe) result = order != 0 || unordered;
  if (n.kind == ExprKind::kLt) result = order < 0;
  if (n.kind == ExprKind::kLe) result = order <= 0 && !unordered;
  return whole(result ? 1 : 0, uncertain ? 1 : 0);
}

Bounded BoundedEval::integers(const BinaryNode& n, const Bounded& a, const Bounded& b) {
  // What floats have made uncertain stays so; beyond sums nothing useful can be said.
  const double sum = a.error + b.error;
  const double error = sum == 0 ? 0 : kInfinity;
  const DType t = n.dtype;
  const bool divides = n.kind == ExprKind::kFloorDiv || n.kind == ExprKind::kFloorMod;
  if (divides && b.integer == 0) {
    fail(prunerc::error(Diag::kInterpDivisionByZero));
    return {};
  }
  switch (n.kind) {
    case ExprKind::kAdd: return whole(wrap_int(t, wrapping_add(a.integer, b.integer)), sum);
    case ExprKind::kSub: return whole(wrap_int(t, wrapping_sub(a.integer, b.integer)), sum);
    case ExprKind::kMul: return whole(wrap_int(t, wrapping_mul(a.integer, b.integer)), error);
    case ExprKind::kFloorDiv: return whole(wrap_int(t, floor_div(a.integer, b.integer)), error);
    case ExprKind::kFloorMod: return whole(floor_mod(a.integer, b.integer), error);
    case ExprKind::kMin: return whole(std::min(a.integer, b.integer), std::max(a.error, b.error));
    case ExprKind::kMax: return whole(std::max(a.integer, b.integer), std::max(a.error, b.error));
    default: break;  // comparisons and logic are the caller's
  }
  PRUNERC_UNREACHABLE("integer operation");
}

Bounded BoundedEval::binary(const BinaryNode& n) {
  const Bounded a = eval(n.lhs);
  if (n.kind == ExprKind::kAnd || n.kind == ExprKind::kOr) {
    const bool decided = (n.kind == ExprKind::kOr) == (a.integer != 0);
    if (decided) return a;
    const Bounded b = eval(n.rhs);
    return whole(b.integer, std::max(a.error, b.error));
  }
  const Bounded b = eval(n.rhs);
  if (n.kind >= ExprKind::kEq && n.kind <= ExprKind::kLe) return compare(n, a, b);
  if (!is_float(n.dtype)) return integers(n, a, b);
  const Bounded out = combine_floats(n.kind, a, b);
  const bool chooses = n.kind == ExprKind::kMin || n.kind == ExprKind::kMax;
  return chooses ? out : rounded(n.dtype, out);
}

Bounded BoundedEval::cast(const Cast& n) {
  const Bounded x = eval(n.operand);
  const bool from_float = is_float(n.operand.dtype());
  if (is_float(n.dtype)) {
    return rounded(n.dtype, {from_float ? x.value : static_cast<double>(x.integer), 0, x.error});
  }
  if (is_bool(n.dtype)) {
    const bool value = from_float ? x.value != 0 : x.integer != 0;
    return whole(value ? 1 : 0, x.error > 0 && std::fabs(x.value) <= x.error ? 1 : 0);
  }
  if (!from_float) {
    const int64_t value = wrap_int(n.dtype, x.integer);
    return whole(value, value == x.integer || x.error == 0 ? x.error : kInfinity);
  }
  const int64_t value = saturate_to(n.dtype, x.value);
  if (x.error == 0) return whole(value);
  const auto off = [&](double at) {
    return std::fabs(static_cast<double>(saturate_to(n.dtype, at)) - static_cast<double>(value));
  };
  return whole(value, std::max(off(x.value - x.error), off(x.value + x.error)));
}

Bounded BoundedEval::select(const Select& n) {
  const Bounded condition = eval(n.condition);
  Bounded chosen = eval(condition.integer != 0 ? n.on_true : n.on_false);
  if (condition.error == 0) return chosen;
  // A kernel may take the other branch.
  const Bounded other = eval(condition.integer != 0 ? n.on_false : n.on_true);
  chosen.error = std::max(chosen.error, std::fabs(chosen.value - other.value) + other.error);
  return chosen;
}

Bounded BoundedEval::eval_term(Expr e) {
  const Mul* product = e.as<Mul>();
  const bool may_be_off = factor_error_ > 0 && product != nullptr && e.dtype() == DType::kF32 &&
                          product->lhs.as<Load>() != nullptr && product->rhs.as<Load>() != nullptr;
  if (!may_be_off) return eval(e);
  const Bounded x = cut_to_tf32(eval(product->lhs), factor_error_);
  const Bounded y = cut_to_tf32(eval(product->rhs), factor_error_);
  return rounded(e.dtype(), combine_floats(ExprKind::kMul, x, y));
}

Bounded BoundedEval::eval(Expr e) {
  if (failure_.has_value()) return {};
  if (const BinaryNode* b = as_binary(e)) return binary(*b);
  if (const Load* l = e.as<Load>()) return load(*l);
  if (const IntImm* c = e.as<IntImm>()) return whole(c->value);
  if (const FloatImm* c = e.as<FloatImm>()) return {c->value, 0, 0};
  if (const Var* v = e.as<Var>()) return whole(var(v->id.value));
  if (const Not* n = e.as<Not>()) {
    const Bounded operand = eval(n->operand);
    return whole(operand.integer == 0 ? 1 : 0, operand.error);
  }
  if (const Select* s = e.as<Select>()) return select(*s);
  if (const Cast* c = e.as<Cast>()) return cast(*c);
  const Call* call = e.as<Call>();
  PRUNERC_CHECK(call != nullptr, "a kind of expression that a program without parameters has");
  Bounded args[3];
  for (std::size_t i = 0; i < call->args.size(); ++i) args[i] = eval(call->args[i]);
  if (is_float(call->dtype)) {
    return rounded(call->dtype,
                   call_bounded(call->intrinsic, call->dtype, args[0], args[1], args[2]));
  }
  const int64_t value = args[0].integer;
  return whole(value < 0 ? wrap_int(call->dtype, wrapping_sub(0, value)) : value, args[0].error);
}

}  // namespace prunerc::ir
