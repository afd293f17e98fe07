#include "ir/interp/evaluate.h"

#include "ir/visit.h"

#include <cmath>

namespace prunerc::ir {
namespace {

std::optional<int64_t> binary_value(const BinaryNode& n, std::span<const int64_t> params) {
  if (is_float(n.lhs.dtype())) return std::nullopt;
  const std::optional<int64_t> lhs = evaluate_params(n.lhs, params);
  if (!lhs) return std::nullopt;
  if (n.kind == ExprKind::kAnd && *lhs == 0) return 0;
  if (n.kind == ExprKind::kOr && *lhs != 0) return 1;
  const std::optional<int64_t> rhs = evaluate_params(n.rhs, params);
  if (!rhs) return std::nullopt;
  const int64_t a = *lhs;
  const int64_t b = *rhs;
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
    case ExprKind::kEq: return a == b;
    case ExprKind::kNe: return a != b;
    case ExprKind::kLt: return a < b;
    case ExprKind::kLe: return a <= b;
    case ExprKind::kAnd:
    case ExprKind::kOr: return b;
    case ExprKind::kDiv:
    case ExprKind::kVar:
    case ExprKind::kTileParam:
    case ExprKind::kIntImm:
    case ExprKind::kFloatImm:
    case ExprKind::kNot:
    case ExprKind::kSelect:
    case ExprKind::kCast:
    case ExprKind::kLoad:
    case ExprKind::kCall: break;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> evaluate_params(Expr e, std::span<const int64_t> params) {
  if (const IntImm* c = e.as<IntImm>()) return c->value;
  if (const TileParam* p = e.as<TileParam>()) {
    const auto index = static_cast<std::size_t>(p->id.value);
    return index < params.size() ? std::optional(params[index]) : std::nullopt;
  }
  if (const BinaryNode* b = as_binary(e)) return binary_value(*b, params);
  if (const Not* n = e.as<Not>()) {
    const std::optional<int64_t> operand = evaluate_params(n->operand, params);
    return operand ? std::optional<int64_t>(*operand == 0) : std::nullopt;
  }
  if (const Select* s = e.as<Select>()) {
    const std::optional<int64_t> condition = evaluate_params(s->condition, params);
    if (!condition) return std::nullopt;
    return evaluate_params(*condition != 0 ? s->on_true : s->on_false, params);
  }
  if (const Cast* c = e.as<Cast>(); c != nullptr && !is_float(c->dtype)) {
    const std::optional<int64_t> operand = evaluate_params(c->operand, params);
    return operand ? std::optional(wrap_to(c->dtype, *operand)) : std::nullopt;
  }
  return std::nullopt;  // a variable, a load, a call or a float
}

double call_float(Intrinsic intrinsic, DType dtype, double x, double y, double z) {
  switch (intrinsic) {
    case Intrinsic::kExp: return round_float(dtype, std::exp(x));
    case Intrinsic::kLog: return round_float(dtype, std::log(x));
    case Intrinsic::kSqrt: return round_float(dtype, std::sqrt(x));
    case Intrinsic::kRsqrt: return round_float(dtype, 1.0 / std::sqrt(x));
    case Intrinsic::kTanh: return round_float(dtype, std::tanh(x));
    case Intrinsic::kErf: return round_float(dtype, std::erf(x));
    case Intrinsic::kSigmoid: return round_float(dtype, 1.0 / (1.0 + std::exp(-x)));
    case Intrinsic::kSin: return round_float(dtype, std::sin(x));
    case Intrinsic::kCos: return round_float(dtype, std::cos(x));
    case Intrinsic::kFloor: return round_float(dtype, std::floor(x));
    case Intrinsic::kCeil: return round_float(dtype, std::ceil(x));
    case Intrinsic::kRound: return round_float(dtype, std::nearbyint(x));  // half to even
    case Intrinsic::kPow: return round_float(dtype, std::pow(x, y));
    case Intrinsic::kFma:
      // Rounding to double first could round an f32 result twice.
      if (dtype == DType::kF32) {
        return static_cast<double>(
            std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)));
      }
      return round_float(dtype, std::fma(x, y, z));
    case Intrinsic::kAbs: return std::fabs(x);
  }
  PRUNERC_UNREACHABLE("intrinsic");
}

}  // namespace prunerc::ir
