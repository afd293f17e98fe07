// The rules beside the normal form of index arithmetic: one row each, tried in order on a node with
// simple operands.
#include "ir/arith/simplifier.h"
#include "ir/equal.h"
#include "ir/visit.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace prunerc::ir {
namespace {

constexpr uint32_t bit(ExprKind k) { return uint32_t{1} << static_cast<unsigned>(k); }
constexpr uint32_t kMinMax = bit(ExprKind::kMin) | bit(ExprKind::kMax);
constexpr uint32_t kDivMod = bit(ExprKind::kFloorDiv) | bit(ExprKind::kFloorMod);
constexpr uint32_t kCompare =
    bit(ExprKind::kEq) | bit(ExprKind::kNe) | bit(ExprKind::kLt) | bit(ExprKind::kLe);

bool is_int_value(Expr e, int64_t value) {
  const IntImm* c = e.as<IntImm>();
  return c != nullptr && c->value == value;
}
// Signed zeros are told apart.
bool is_float_value(Expr e, double value) {
  const FloatImm* c = e.as<FloatImm>();
  return c != nullptr && c->value == value && std::signbit(c->value) == std::signbit(value);
}
bool is_one(Expr e) { return is_int_value(e, 1) || is_float_value(e, 1.0); }

// x + 0, and x + -0.0: adding +0.0 would turn -0.0 into +0.0.
Expr add_zero(Simplifier&, Expr e) {
  const BinaryNode* n = as_binary(e);
  if (is_int_value(n->rhs, 0) || is_float_value(n->rhs, -0.0)) return n->lhs;
  if (is_int_value(n->lhs, 0) || is_float_value(n->lhs, -0.0)) return n->rhs;
  return {};
}

Expr sub_zero(Simplifier&, Expr e) {
  const BinaryNode* n = as_binary(e);
  return is_int_value(n->rhs, 0) || is_float_value(n->rhs, 0.0) ? n->lhs : Expr();
}

// A difference of equal floats may be NaN.
Expr sub_self(Simplifier& s, Expr e) {
  const BinaryNode* n = as_binary(e);
  if (!is_int(e.dtype()) || !structural_equal(n->lhs, n->rhs)) return {};
  return s.builder().int_imm(0, e.dtype());
}

Expr mul_one(Simplifier&, Expr e) {
  const BinaryNode* n = as_binary(e);
  return is_one(n->rhs) ? n->lhs : is_one(n->lhs) ? n->rhs : Expr();
}

// Integers only: 0 * inf is NaN.
Expr mul_zero(Simplifier&, Expr e) {
  const BinaryNode* n = as_binary(e);
  return is_int_value(n->rhs, 0) ? n->rhs : is_int_value(n->lhs, 0) ? n->lhs : Expr();
}

Expr div_one(Simplifier&, Expr e) {
  const BinaryNode* n = as_binary(e);
  return is_one(n->rhs) ? n->lhs : Expr();
}

// Division of narrow integers and of data that may wrap; i64 index arithmetic has its normal form.
Expr divmod_one(Simplifier& s, Expr e) {
  const BinaryNode* n = as_binary(e);
  if (!is_int_value(n->rhs, 1)) return {};
  return n->kind == ExprKind::kFloorDiv ? n->lhs : s.builder().int_imm(0, e.dtype());
}

Expr min_max_same(Simplifier&, Expr e) {
  const BinaryNode* n = as_binary(e);
  return structural_equal(n->lhs, n->rhs) ? n->lhs : Expr();
}

Expr min_max_bounds(Simplifier& s, Expr e) {
  const BinaryNode* n = as_binary(e);
  if (!is_int(e.dtype())) return {};
  const bool is_min = n->kind == ExprKind::kMin;
  const Interval a = interval_of(n->lhs, s.ranges());
  const Interval b = interval_of(n->rhs, s.ranges());
  if (a.hi <= b.lo) return is_min ? n->lhs : n->rhs;
  if (b.hi <= a.lo) return is_min ? n->rhs : n->lhs;
  if (e.dtype() != DType::kI64) return {};
  const Linear x = s.linear(n->lhs);
  const Linear y = s.linear(n->rhs);
  const Linear difference = x - y;  // where data cancels, each side may still have wrapped
  if (s.may_wrap(x) || s.may_wrap(y) || s.may_wrap(difference)) return {};
  const Interval range = s.interval_with_facts(difference);
  if (range.hi <= 0) return is_min ? n->lhs : n->rhs;
  if (range.lo >= 0) return is_min ? n->rhs : n->lhs;
  return {};
}

// min(min(x, 3), 5) = min(x, 3); the constant stands on the right (min_max_order).
Expr min_max_constants(Simplifier& s, Expr e) {
  const BinaryNode* n = as_binary(e);
  const BinaryNode* inner = n->lhs.kind() == n->kind ? as_binary(n->lhs) : nullptr;
  if (inner == nullptr || n->rhs.kind() != ExprKind::kIntImm) return {};
  if (inner->rhs.kind() != ExprKind::kIntImm) return {};
  return s.builder().binary(n->kind, inner->lhs, s.builder().binary(n->kind, inner->rhs, n->rhs));
}

// min(min(x, y), x) = min(x, y), and min(max(x, y), x) = x.
Expr min_max_absorb(Simplifier&, Expr e) {
  const BinaryNode* n = as_binary(e);
  if (!is_int(e.dtype())) return {};
  for (const auto& [inner, other] : {std::pair(n->lhs, n->rhs), std::pair(n->rhs, n->lhs)}) {
    if (inner.kind() != ExprKind::kMin && inner.kind() != ExprKind::kMax) continue;
    const BinaryNode* m = as_binary(inner);
    if (!structural_equal(m->lhs, other) && !structural_equal(m->rhs, other)) continue;
    return m->kind == n->kind ? inner : other;
  }
  return {};
}

// One order for both spellings of a commutative integer operation; floats keep theirs (NaN and
// signed zeros).
Expr min_max_order(Simplifier& s, Expr e) {
  const BinaryNode* n = as_binary(e);
  if (!is_int(e.dtype())) return {};
  const bool constant_left = n->lhs.kind() == ExprKind::kIntImm;
  const bool constant_right = n->rhs.kind() == ExprKind::kIntImm;
  const bool swap = constant_left || (!constant_right && compare_exprs(n->lhs, n->rhs) > 0);
  return swap ? s.builder().binary(n->kind, n->rhs, n->lhs) : Expr();
}

Expr compare_same(Simplifier& s, Expr e) {
  const BinaryNode* n = as_binary(e);
  if (is_float(n->lhs.dtype()) || !structural_equal(n->lhs, n->rhs)) return {};
  return s.builder().bool_imm(n->kind == ExprKind::kEq || n->kind == ExprKind::kLe);
}

Expr compare_bounds(Simplifier& s, Expr e) {
  const BinaryNode* n = as_binary(e);
  if (!is_int(n->lhs.dtype())) return {};
  const Interval range = interval_of(e, s.ranges());
  return range.is_point() ? s.builder().bool_imm(range.lo != 0) : Expr();
}

// b == true, b != false ...
Expr compare_bool(Simplifier& s, Expr e) {
  const BinaryNode* n = as_binary(e);
  if (!is_bool(n->lhs.dtype()) || n->kind == ExprKind::kLt || n->kind == ExprKind::kLe) return {};
  for (const auto& [c, other] : {std::pair(n->lhs, n->rhs), std::pair(n->rhs, n->lhs)}) {
    const IntImm* value = c.as<IntImm>();
    if (value == nullptr) continue;
    const bool keeps = (value->value != 0) == (n->kind == ExprKind::kEq);
    return keeps ? other : s.builder().logical_not(other);
  }
  return {};
}

// !(a < b) is b <= a, except for NaN; !(a == b) is a != b always.
Expr not_compare(Simplifier& s, Expr e) {
  const Expr operand = e.as<Not>()->operand;
  const BinaryNode* n = as_binary(operand);
  if (n == nullptr) return {};
  if (n->kind == ExprKind::kEq) return s.builder().ne(n->lhs, n->rhs);
  if (n->kind == ExprKind::kNe) return s.builder().eq(n->lhs, n->rhs);
  if (is_float(n->lhs.dtype())) return {};
  if (n->kind == ExprKind::kLt) return s.builder().le(n->rhs, n->lhs);
  if (n->kind == ExprKind::kLe) return s.builder().lt(n->rhs, n->lhs);
  return {};
}

// A condition that stands among the facts.
Expr known_condition(Simplifier& s, Expr e) {
  if (!is_bool(e.dtype()) || s.ranges().facts().empty()) return {};
  const std::optional<bool> known = s.decide(e);
  return known.has_value() ? s.builder().bool_imm(*known) : Expr();
}

Expr select_same(Simplifier&, Expr e) {
  const Select* n = e.as<Select>();
  return structural_equal(n->on_true, n->on_false) ? n->on_true : Expr();
}

Expr select_not(Simplifier& s, Expr e) {
  const Select* n = e.as<Select>();
  const Not* condition = n->condition.as<Not>();
  if (condition == nullptr) return {};
  return s.builder().select(condition->operand, n->on_false, n->on_true);
}

Expr select_bool(Simplifier& s, Expr e) {
  const Select* n = e.as<Select>();
  if (!is_bool(e.dtype())) return {};
  if (is_int_value(n->on_true, 1) && is_int_value(n->on_false, 0)) return n->condition;
  if (is_int_value(n->on_true, 0) && is_int_value(n->on_false, 1)) {
    return s.builder().logical_not(n->condition);
  }
  return {};
}

bool widens(DType from, DType to) {
  if (is_float(from) != is_float(to)) return false;
  if (is_float(from)) {
    // f16 and bf16 have neither range nor precision in common.
    return to == DType::kF64 || (to == DType::kF32 && from != DType::kF64) || from == to;
  }
  return min_int(to) <= min_int(from) && max_int(from) <= max_int(to);
}

// cast(cast(x)) = cast(x) if the inner cast keeps every value.
Expr cast_of_cast(Simplifier& s, Expr e) {
  const Cast* n = e.as<Cast>();
  const Cast* inner = n->operand.as<Cast>();
  if (inner == nullptr || !widens(inner->operand.dtype(), inner->dtype)) return {};
  return s.builder().cast(n->dtype, inner->operand);
}

// clang-format off
constexpr std::array kRules = {
    SimplifyRule{"add_zero", bit(ExprKind::kAdd), add_zero},
    SimplifyRule{"sub_zero", bit(ExprKind::kSub), sub_zero},
    SimplifyRule{"sub_self", bit(ExprKind::kSub), sub_self},
    SimplifyRule{"mul_one", bit(ExprKind::kMul), mul_one},
    SimplifyRule{"mul_zero", bit(ExprKind::kMul), mul_zero},
    SimplifyRule{"div_one", bit(ExprKind::kDiv), div_one},
    SimplifyRule{"divmod_one", kDivMod, divmod_one},
    SimplifyRule{"min_max_same", kMinMax, min_max_same},
    SimplifyRule{"min_max_bounds", kMinMax, min_max_bounds},
    SimplifyRule{"min_max_constants", kMinMax, min_max_constants},
    SimplifyRule{"min_max_absorb", kMinMax, min_max_absorb},
    SimplifyRule{"min_max_order", kMinMax, min_max_order},
    SimplifyRule{"compare_same", kCompare, compare_same},
    SimplifyRule{"compare_bounds", kCompare, compare_bounds},
    SimplifyRule{"compare_bool", kCompare, compare_bool},
    SimplifyRule{"not_compare", bit(ExprKind::kNot), not_compare},
    SimplifyRule{"known_condition", kCompare | bit(ExprKind::kNot) | bit(ExprKind::kSelect) | bit(ExprKind::kLoad) | bit(ExprKind::kCast), known_condition},
    SimplifyRule{"select_same", bit(ExprKind::kSelect), select_same},
    SimplifyRule{"select_not", bit(ExprKind::kSelect), select_not},
    SimplifyRule{"select_bool", bit(ExprKind::kSelect), select_bool},
    SimplifyRule{"cast_of_cast", bit(ExprKind::kCast), cast_of_cast},
};
// clang-format on

}  // namespace

std::span<const SimplifyRule> simplify_rules() { return kRules; }

std::span<const std::string_view> simplify_rule_names() {
  static const auto names = [] {
    std::array<std::string_view, kRules.size()> out;
    std::transform(kRules.begin(), kRules.end(), out.begin(),
                   [](const SimplifyRule& r) { return r.name; });
    return out;
  }();
  return names;
}

}  // namespace prunerc::ir
