#include "ir/interp/evaluate.h"

#include "ir/support/check.h"

#include <bit>
#include <cmath>

namespace prunerc::ir {
namespace {

// x * y + z of values of 16 bits, whose product is exact: cut, and its last bit set if anything is lost. A
// rounding to 16 bits is then as if from the exact sum.
double fma_to_odd(double x, double y, double z) {
  const double product = x * y;
  const double sum = product + z;
  // What the sum is short of, exactly (Knuth).
  const double of_z = sum - product;
  const double rest = (product - (sum - of_z)) + (z - of_z);
  if (!(std::fabs(rest) > 0)) return sum;
  const uint64_t too_large = (rest < 0) != (sum < 0) ? 1 : 0;
  return std::bit_cast<double>((std::bit_cast<uint64_t>(sum) - too_large) | 1);
}

}  // namespace

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
      // Rounding to double first could round a result twice.
      if (dtype == DType::kF32) {
        return static_cast<double>(
            std::fma(static_cast<float>(x), static_cast<float>(y), static_cast<float>(z)));
      }
      return dtype == DType::kF64 ? std::fma(x, y, z) : round_float(dtype, fma_to_odd(x, y, z));
    case Intrinsic::kAbs: return std::fabs(x);
  }
  PRUNERC_UNREACHABLE("intrinsic");
}

}  // namespace prunerc::ir
