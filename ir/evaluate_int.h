// The value of an integer or bool expression at one point.
#ifndef PRUNERC_IR_EVALUATE_INT_H_
#define PRUNERC_IR_EVALUATE_INT_H_

#include "ir/dtype.h"
#include "ir/int_math.h"
#include "ir/visit.h"

#include <algorithm>
#include <cstdint>
#include <optional>

namespace prunerc::ir {

/// An operation on integers, without && and ||, which need not look at their second operand.
/// Nullopt for a division by zero and for operations on floats.
inline std::optional<int64_t> evaluate_int(const BinaryNode& n, int64_t a, int64_t b) {
  switch (n.kind) {
    case ExprKind::kAdd: return wrap_to(n.dtype, wrapping_add(a, b));
    case ExprKind::kSub: return wrap_to(n.dtype, wrapping_sub(a, b));
    case ExprKind::kMul: return wrap_to(n.dtype, wrapping_mul(a, b));
    case ExprKind::kFloorDiv:
      if (b == 0) return std::nullopt;
      return wrap_to(n.dtype, floor_div(a, b));
    case ExprKind::kFloorMod:
      if (b == 0) return std::nullopt;
      return floor_mod(a, b);
    case ExprKind::kMin: return std::min(a, b);
    case ExprKind::kMax: return std::max(a, b);
    case ExprKind::kEq: return a == b ? 1 : 0;
    case ExprKind::kNe: return a != b ? 1 : 0;
    case ExprKind::kLt: return a < b ? 1 : 0;
    case ExprKind::kLe: return a <= b ? 1 : 0;
    default: return std::nullopt;
  }
}

/// `leaf` gives variables and tile parameters, or nullopt. Nullopt for what loads, calls, holds
/// floats, divides by zero or names something that `leaf` does not know.
template <typename Leaf>
std::optional<int64_t> evaluate_int(Expr e, const Leaf& leaf) {
  if (e.as<Var>() != nullptr || e.as<TileParam>() != nullptr) return leaf(e);
  if (const IntImm* c = e.as<IntImm>()) return c->value;
  if (const BinaryNode* n = as_binary(e)) {
    const std::optional<int64_t> a = evaluate_int(n->lhs, leaf);
    if (!a) return std::nullopt;
    if (n->kind == ExprKind::kAnd && *a == 0) return 0;
    if (n->kind == ExprKind::kOr && *a != 0) return 1;
    const std::optional<int64_t> b = evaluate_int(n->rhs, leaf);
    if (!b || n->kind == ExprKind::kAnd || n->kind == ExprKind::kOr) return b;
    return evaluate_int(*n, *a, *b);
  }
  if (const Not* n = e.as<Not>()) {
    const std::optional<int64_t> a = evaluate_int(n->operand, leaf);
    return a ? std::optional<int64_t>(*a == 0 ? 1 : 0) : std::nullopt;
  }
  if (const Select* s = e.as<Select>()) {
    const std::optional<int64_t> c = evaluate_int(s->condition, leaf);
    if (!c) return std::nullopt;
    return evaluate_int(*c != 0 ? s->on_true : s->on_false, leaf);
  }
  if (const Cast* c = e.as<Cast>(); c != nullptr && !is_float(c->dtype)) {
    const std::optional<int64_t> a = evaluate_int(c->operand, leaf);
    return a ? std::optional(wrap_to(c->dtype, *a)) : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_EVALUATE_INT_H_
