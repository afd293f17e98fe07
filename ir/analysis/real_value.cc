#include "ir/analysis/real_value.h"

#include "ir/int_math.h"
#include "ir/support/check.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>

namespace prunerc::ir {

namespace {

double call(Intrinsic intrinsic, double x, double y, double z) {
  switch (intrinsic) {
    case Intrinsic::kExp: return std::exp(x);
    case Intrinsic::kLog: return std::log(x);
    case Intrinsic::kSqrt: return std::sqrt(x);
    case Intrinsic::kRsqrt: return 1 / std::sqrt(x);
    case Intrinsic::kTanh: return std::tanh(x);
    case Intrinsic::kErf: return std::erf(x);
    case Intrinsic::kSigmoid: return 1 / (1 + std::exp(-x));
    case Intrinsic::kSin: return std::sin(x);
    case Intrinsic::kCos: return std::cos(x);
    case Intrinsic::kFloor: return std::floor(x);
    case Intrinsic::kCeil: return std::ceil(x);
    case Intrinsic::kRound: return std::nearbyint(x);
    case Intrinsic::kPow: return std::pow(x, y);
    case Intrinsic::kFma: return x * y + z;
    case Intrinsic::kAbs: return std::fabs(x);
  }
  PRUNERC_UNREACHABLE("intrinsic");
}

double arithmetic(ExprKind kind, double a, double b) {
  switch (kind) {
    case ExprKind::kAdd: return a + b;
    case ExprKind::kSub: return a - b;
    case ExprKind::kMul: return a * b;
    case ExprKind::kDiv: return a / b;
    case ExprKind::kMin: return std::min(a, b);
    case ExprKind::kMax: return std::max(a, b);
    default: PRUNERC_UNREACHABLE("arithmetic of floats");
  }
}

int64_t arithmetic(ExprKind kind, int64_t a, int64_t b) {
  switch (kind) {
    case ExprKind::kAdd: return wrapping_add(a, b);
    case ExprKind::kSub: return wrapping_sub(a, b);
    case ExprKind::kMul: return wrapping_mul(a, b);
    case ExprKind::kFloorDiv: return b == 0 ? 0 : floor_div(a, b);
    case ExprKind::kFloorMod: return b == 0 ? 0 : floor_mod(a, b);
    case ExprKind::kMin: return std::min(a, b);
    case ExprKind::kMax: return std::max(a, b);
    default: PRUNERC_UNREACHABLE("arithmetic of integers");
  }
}

template <typename T>
bool compare(ExprKind kind, T a, T b) {
  switch (kind) {
    case ExprKind::kEq: return a == b;
    case ExprKind::kNe: return a != b;
    case ExprKind::kLt: return a < b;
    case ExprKind::kLe: return a <= b;
    default: PRUNERC_UNREACHABLE("comparison");
  }
}

Sample truth(bool value) { return {0, value ? 1 : 0}; }

Sample convert(DType to, DType from, Sample value) {
  if (is_float(to)) {
    return {is_float(from) ? value.real : static_cast<double>(value.integer), 0};
  }
  if (is_bool(to)) return truth(is_float(from) ? value.real != 0 : value.integer != 0);
  return {0, is_float(from) ? saturate_to(to, value.real) : wrap_to(to, value.integer)};
}

Sample binary(Expr e, const BinaryNode& n, const LeafFn& leaf) {
  const Sample a = evaluate_at(n.lhs, leaf);
  if (e.kind() == ExprKind::kAnd || e.kind() == ExprKind::kOr) {
    const bool decided = (a.integer != 0) == (e.kind() == ExprKind::kOr);
    return decided ? a : evaluate_at(n.rhs, leaf);
  }
  const Sample b = evaluate_at(n.rhs, leaf);
  const bool reals = is_float(n.lhs.dtype());
  if (is_bool(e.dtype())) {
    return truth(reals ? compare(e.kind(), a.real, b.real)
                       : compare(e.kind(), a.integer, b.integer));
  }
  if (reals) return {arithmetic(e.kind(), a.real, b.real), 0};
  return {0, wrap_to(e.dtype(), arithmetic(e.kind(), a.integer, b.integer))};
}

Sample call(const Call& n, const LeafFn& leaf) {
  Sample args[3];
  for (std::size_t i = 0; i < n.args.size(); ++i) args[i] = evaluate_at(n.args[i], leaf);
  if (is_float(n.dtype)) return {call(n.intrinsic, args[0].real, args[1].real, args[2].real), 0};
  // abs alone takes integers.
  const int64_t value = args[0].integer;
  return {0, value < 0 ? wrap_to(n.dtype, wrapping_sub(0, value)) : value};
}

}  // namespace

Sample evaluate_at(Expr e, const LeafFn& leaf) {
  if (const BinaryNode* n = as_binary(e)) return binary(e, *n, leaf);
  return visit(
      e,
      Overload{[&](const Var&) { return leaf(e); }, [&](const TileParam&) { return leaf(e); },
               [&](const Load&) { return leaf(e); },
               [&](const IntImm& n) {
                 return Sample{0, n.value};
               },
               [&](const FloatImm& n) {
                 return Sample{n.value, 0};
               },
               [&](const Not& n) { return truth(evaluate_at(n.operand, leaf).integer == 0); },
               [&](const Select& n) {
                 return evaluate_at(n.condition, leaf).integer != 0 ? evaluate_at(n.on_true, leaf)
                                                                    : evaluate_at(n.on_false, leaf);
               },
               [&](const Cast& n) {
                 return convert(n.dtype, n.operand.dtype(), evaluate_at(n.operand, leaf));
               },
               [&](const Call& n) { return call(n, leaf); },
               [&](const BinaryNode&) -> Sample { PRUNERC_UNREACHABLE("binary handled above"); }});
}

bool same_value(DType dtype, Sample a, Sample b) {
  if (!is_float(dtype)) return a.integer == b.integer;
  if (a.real == b.real) return true;
  // Hundreds of operations on moderate values lose a few digits of sixteen.
  constexpr double kTolerance = 1e-8;
  const double scale = std::max({1.0, std::fabs(a.real), std::fabs(b.real)});
  return std::fabs(a.real - b.real) <= kTolerance * scale;
}

}  // namespace prunerc::ir
