#include "ir/interp/bounded.h"

#include "ir/interp/evaluate.h"
#include "ir/support/check.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace prunerc::ir {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// Allowance for polynomial approximations of exp, tanh and the like, in units of the type.
constexpr double kFunctionUlps = 8;
// Factor c of the bound of sums; 4 lets correct kernels use at most 0.92 of the bound at K = 64,
// less above.
constexpr double kSumFactor = 4;

// Smallest positive value of the type.
double tiny(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 0x1p-1074;
    case DType::kF32: return 0x1p-126;  // kernels may flush subnormals
    case DType::kF16: return 0x1p-24;
    case DType::kBF16: return 0x1p-126;
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool: return 0;
  }
  PRUNERC_UNREACHABLE("type");
}

// Largest |f(t) - f(x)| over the ends of [x - e, x + e], for monotone f.
template <typename F>
double spread(F f, double x, double e) {
  if (e == 0) return 0;
  const double up = std::fabs(f(x + e) - f(x));
  const double down = std::fabs(f(x - e) - f(x));
  return std::isnan(up) || std::isnan(down) ? kInfinity : std::max(up, down);
}

// A function that jumps by one at some points, or not at all if the operand is certain.
template <typename F>
double step_error(F f, const Bounded& x) {
  return x.error == 0
             ? 0
             : std::max(f(x.value + x.error) - f(x.value), f(x.value) - f(x.value - x.error));
}

}  // namespace

double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::kF64: return 0x1p-53;
    case DType::kF32: return 0x1p-24;
    case DType::kF16: return 0x1p-11;
    case DType::kBF16: return 0x1p-8;
    case DType::kI64:
    case DType::kI32:
    case DType::kI8:
    case DType::kU8:
    case DType::kBool: return 0;
  }
  PRUNERC_UNREACHABLE("type");
}

Bounded rounded(DType dtype, Bounded x) {
  // A value that the type holds exactly is not disturbed, which keeps tests on whole numbers sharp.
  if (x.error == 0 && round_float(dtype, x.value) == x.value) return x;
  x.error += unit_roundoff(dtype) * (std::fabs(x.value) + x.error) + tiny(dtype);
  // Beyond the largest finite value a kernel gives infinity, and so does the reference.
  if (std::isinf(round_float(dtype, x.value))) x = {round_float(dtype, x.value), 0, kInfinity};
  return x;
}

Bounded cut_to_tf32(Bounded x, double part) {
  constexpr uint32_t kDropped = 0x1fff;
  constexpr double kLeast = 0x1p-136;  // that is dropped of what has no bits to spare
  const auto single = static_cast<float>(x.value);
  const bool holds =
      (std::bit_cast<uint32_t>(single) & kDropped) == 0 && static_cast<double>(single) == x.value;
  if (x.error > 0 || !holds) x.error += part * (std::fabs(x.value) + x.error) + kLeast;
  return x;
}

Bounded combine_floats(ExprKind kind, const Bounded& a, const Bounded& b) {
  const double x = std::fabs(a.value);
  const double y = std::fabs(b.value);
  switch (kind) {
    case ExprKind::kAdd: return {a.value + b.value, 0, a.error + b.error};
    case ExprKind::kSub: return {a.value - b.value, 0, a.error + b.error};
    case ExprKind::kMul:
      return {a.value * b.value, 0, x * b.error + y * a.error + a.error * b.error};
    case ExprKind::kDiv:
      if (b.error >= y && b.error > 0) return {a.value / b.value, 0, kInfinity};
      return {a.value / b.value, 0,
              b.error == 0 && a.error == 0 ? 0 : (a.error + x / y * b.error) / (y - b.error)};
    case ExprKind::kMin: return {min_float(a.value, b.value), 0, std::max(a.error, b.error)};
    case ExprKind::kMax: return {max_float(a.value, b.value), 0, std::max(a.error, b.error)};
    default: break;  // integers and comparisons are the caller's
  }
  PRUNERC_UNREACHABLE("float operation");
}

Bounded call_bounded(Intrinsic intrinsic, DType dtype, const Bounded& x, const Bounded& y,
                     const Bounded& z) {
  // At f64, so that the value itself is not rounded to the type.
  const double value = call_float(intrinsic, DType::kF64, x.value, y.value, z.value);
  const double ulps = kFunctionUlps * unit_roundoff(dtype) * std::fabs(value);
  const double e = x.error;
  switch (intrinsic) {
    case Intrinsic::kExp:
      return {value, 0, ulps + spread([](double t) { return std::exp(t); }, x.value, e)};
    case Intrinsic::kLog:
      // Near 1 the result is small while the argument's own rounding is not.
      return {
          value, 0,
          ulps + unit_roundoff(dtype) + spread([](double t) { return std::log(t); }, x.value, e)};
    case Intrinsic::kSqrt:
      return {value, 0, spread([](double t) { return std::sqrt(std::max(t, 0.0)); }, x.value, e)};
    case Intrinsic::kRsqrt:
      return {value, 0, ulps + spread([](double t) { return 1 / std::sqrt(t); }, x.value, e)};
    case Intrinsic::kTanh: return {value, 0, ulps + e};
    case Intrinsic::kErf: return {value, 0, ulps + 1.13 * e};  // 2 / sqrt(pi)
    case Intrinsic::kSigmoid: return {value, 0, ulps + 0.25 * e};
    case Intrinsic::kSin:
    case Intrinsic::kCos:
      // Range reduction costs units of the argument, not of the result.
      return {value, 0,
              ulps + e + kFunctionUlps * unit_roundoff(dtype) * std::max(1.0, std::fabs(x.value))};
    case Intrinsic::kFloor:
      return {value, 0, step_error([](double t) { return std::floor(t); }, x)};
    case Intrinsic::kCeil: return {value, 0, step_error([](double t) { return std::ceil(t); }, x)};
    case Intrinsic::kRound:
      return {value, 0, step_error([](double t) { return std::nearbyint(t); }, x)};
    case Intrinsic::kPow: {
      // x^y = exp(y log x): the error of y log x is that of the exponent's argument.
      const double slope = std::fabs(y.value) * e / std::max(std::fabs(x.value) - e, 0x1p-1022) +
                           y.error * std::fabs(std::log(std::fabs(x.value)));
      const double argument = std::fabs(y.value * std::log(std::fabs(x.value)));
      const double extra = kFunctionUlps * unit_roundoff(dtype) * (1 + argument);
      const double error = std::fabs(value) * std::expm1(slope + extra);
      return {value, 0, std::isnan(error) ? (e == 0 && y.error == 0 ? ulps : kInfinity) : error};
    }
    case Intrinsic::kFma: {
      Bounded product = rounded(dtype, combine_floats(ExprKind::kMul, x, y));
      return combine_floats(ExprKind::kAdd, product, z);
    }
    case Intrinsic::kAbs: return {value, 0, e};
  }
  PRUNERC_UNREACHABLE("intrinsic");
}

double sum_error(DType dtype, int64_t count, double sum_of_magnitudes) {
  const auto k = static_cast<double>(count);
  return kSumFactor * std::min(k, 8 * std::sqrt(k)) * unit_roundoff(dtype) * sum_of_magnitudes;
}

}  // namespace prunerc::ir
