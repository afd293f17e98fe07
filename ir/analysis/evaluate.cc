#include "ir/analysis/evaluate.h"

#include "ir/analysis/interval.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

template <typename Id>
std::optional<int64_t> look_up(const std::vector<std::pair<Id, int64_t>>& values, Id id) {
  for (const auto& entry : values) {
    if (entry.first == id) return entry.second;
  }
  return std::nullopt;
}

std::optional<int64_t> binary_value(const BinaryNode& n, int64_t a, int64_t b) {
  const auto ua = static_cast<uint64_t>(a);
  const auto ub = static_cast<uint64_t>(b);
  switch (n.kind) {
    case ExprKind::kAdd: return wrap_to(n.dtype, static_cast<int64_t>(ua + ub));
    case ExprKind::kSub: return wrap_to(n.dtype, static_cast<int64_t>(ua - ub));
    case ExprKind::kMul: return wrap_to(n.dtype, static_cast<int64_t>(ua * ub));
    case ExprKind::kFloorDiv:
      if (b == 0) return std::nullopt;
      return wrap_to(n.dtype, floor_div(a, b));
    case ExprKind::kFloorMod:
      if (b == 0) return std::nullopt;
      return floor_mod(a, b);
    case ExprKind::kMin: return std::min(a, b);
    case ExprKind::kMax: return std::max(a, b);
    case ExprKind::kEq: return a == b;
    case ExprKind::kNe: return a != b;
    case ExprKind::kLt: return a < b;
    case ExprKind::kLe: return a <= b;
    default: return std::nullopt;
  }
}

}  // namespace

std::optional<int64_t> evaluate(Expr e, const Point& at) {
  if (const Var* v = e.as<Var>()) return look_up(at.vars, v->id);
  if (const TileParam* p = e.as<TileParam>()) return look_up(at.params, p->id);
  if (const IntImm* c = e.as<IntImm>()) return c->value;
  if (const BinaryNode* n = as_binary(e)) {
    if (is_float(n->lhs.dtype())) return std::nullopt;
    const std::optional<int64_t> a = evaluate(n->lhs, at);
    if (!a.has_value()) return std::nullopt;
    if (n->kind == ExprKind::kAnd && *a == 0) return 0;
    if (n->kind == ExprKind::kOr && *a != 0) return 1;
    const std::optional<int64_t> b = evaluate(n->rhs, at);
    if (!b.has_value() || n->kind == ExprKind::kAnd || n->kind == ExprKind::kOr) return b;
    return binary_value(*n, *a, *b);
  }
  if (const Not* n = e.as<Not>()) {
    const std::optional<int64_t> a = evaluate(n->operand, at);
    if (!a.has_value()) return std::nullopt;
    return *a == 0 ? 1 : 0;
  }
  if (const Select* s = e.as<Select>()) {
    const std::optional<int64_t> c = evaluate(s->condition, at);
    if (!c.has_value()) return std::nullopt;
    return evaluate(*c != 0 ? s->on_true : s->on_false, at);
  }
  if (const Cast* c = e.as<Cast>(); c != nullptr && !is_float(c->dtype)) {
    if (is_float(c->operand.dtype())) return std::nullopt;
    const std::optional<int64_t> a = evaluate(c->operand, at);
    if (!a.has_value()) return std::nullopt;
    return wrap_to(c->dtype, *a);
  }
  return std::nullopt;
}

}  // namespace prunerc::ir
