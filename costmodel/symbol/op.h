// The operations of symbolic numbers, one function each: folding, reference and batches share them.
#ifndef PRUNERC_COSTMODEL_SYMBOL_OP_H_
#define PRUNERC_COSTMODEL_SYMBOL_OP_H_

#include "ir/support/check.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace prunerc::costmodel {

/// Truth values are 1 and 0. Parameter, coefficient and constant have no operands.
enum class SymOp : uint8_t {
  kParam,
  kCoefficient,
  kConstant,
  kAdd,
  kSub,
  kMul,
  kDiv,
  kMin,
  kMax,
  kLess,
  kLessEqual,
  kEqual,
  kAnd,
  kOr,
  kNot,
  kCeil,
  kFloor,
  kAbs,
  kLog2,
  kTwosPart,
  kSelect,
};

constexpr bool is_leaf(SymOp op) { return op <= SymOp::kConstant; }
constexpr bool is_binary(SymOp op) { return op >= SymOp::kAdd && op <= SymOp::kOr; }
constexpr bool is_unary(SymOp op) { return op >= SymOp::kNot && op <= SymOp::kTwosPart; }

namespace symbol {

/// 2^52: adding it leaves an integer below it in the mantissa's bits. Conversions by this detour
/// exist as vector instructions on every x86-64-v3, those between doubles and 64-bit integers do
/// not.
constexpr double kTwo52 = 4503599627370496.0;
constexpr uint64_t kTwo52Bits = 0x4330000000000000;
constexpr uint64_t kMantissa = 0x000fffffffffffff;

/// Largest power of two that divides x, for integers 0 <= x < 2^52; 0 for 0.
inline double power_of_two_factor(double x) {
  const uint64_t n = std::bit_cast<uint64_t>(x + kTwo52) & kMantissa;
  return std::bit_cast<double>((n & (0 - n)) | kTwo52Bits) - kTwo52;
}

/// Base-2 logarithm of a positive normal number, to about 1e-15 relative.
inline double log2(double x) {
  constexpr double kSqrt2 = 1.4142135623730951;
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  const double m0 = std::bit_cast<double>((bits & kMantissa) | 0x3ff0000000000000);
  const bool high = m0 > kSqrt2;
  const double m = high ? m0 * 0.5 : m0;
  const double exponent =
      std::bit_cast<double>((bits >> 52) | kTwo52Bits) - (kTwo52 + 1023) + (high ? 1.0 : 0.0);
  // atanh's series: |t| < 0.172, so that ten terms reach the last bit.
  const double t = (m - 1) / (m + 1);
  const double s = t * t;
  double sum = 1.0 / 21;
  sum = sum * s + 1.0 / 19;
  sum = sum * s + 1.0 / 17;
  sum = sum * s + 1.0 / 15;
  sum = sum * s + 1.0 / 13;
  sum = sum * s + 1.0 / 11;
  sum = sum * s + 1.0 / 9;
  sum = sum * s + 1.0 / 7;
  sum = sum * s + 1.0 / 5;
  sum = sum * s + 1.0 / 3;
  sum = sum * s + 1.0;
  constexpr double kTwoOverLn2 = 2.8853900817779268;
  return exponent + kTwoOverLn2 * t * sum;
}

/// The value of one operation; operands that it does not have are ignored.
template <SymOp kOp>
inline double apply(double a, double b) {
  if constexpr (kOp == SymOp::kAdd) return a + b;
  if constexpr (kOp == SymOp::kSub) return a - b;
  if constexpr (kOp == SymOp::kMul) return a * b;
  if constexpr (kOp == SymOp::kDiv) return a / b;
  if constexpr (kOp == SymOp::kMin) return a < b ? a : b;
  if constexpr (kOp == SymOp::kMax) return a > b ? a : b;
  if constexpr (kOp == SymOp::kLess) return a < b ? 1.0 : 0.0;
  if constexpr (kOp == SymOp::kLessEqual) return a <= b ? 1.0 : 0.0;
  if constexpr (kOp == SymOp::kEqual) return a == b ? 1.0 : 0.0;
  if constexpr (kOp == SymOp::kAnd) return a * b;
  if constexpr (kOp == SymOp::kOr) return a > b ? a : b;
  if constexpr (kOp == SymOp::kNot) return 1.0 - a;
  if constexpr (kOp == SymOp::kCeil) return std::ceil(a);
  if constexpr (kOp == SymOp::kFloor) return std::floor(a);
  if constexpr (kOp == SymOp::kAbs) return std::abs(a);
  if constexpr (kOp == SymOp::kLog2) return log2(a);
  if constexpr (kOp == SymOp::kTwosPart) return power_of_two_factor(a);
}

}  // namespace symbol

/// Calls f with the operation as a template argument: f.template operator()<SymOp::kAdd>(). For
/// operations with one or two operands.
template <typename F>
decltype(auto) dispatch(SymOp op, F&& f) {
  switch (op) {
    case SymOp::kAdd: return f.template operator()<SymOp::kAdd>();
    case SymOp::kSub: return f.template operator()<SymOp::kSub>();
    case SymOp::kMul: return f.template operator()<SymOp::kMul>();
    case SymOp::kDiv: return f.template operator()<SymOp::kDiv>();
    case SymOp::kMin: return f.template operator()<SymOp::kMin>();
    case SymOp::kMax: return f.template operator()<SymOp::kMax>();
    case SymOp::kLess: return f.template operator()<SymOp::kLess>();
    case SymOp::kLessEqual: return f.template operator()<SymOp::kLessEqual>();
    case SymOp::kEqual: return f.template operator()<SymOp::kEqual>();
    case SymOp::kAnd: return f.template operator()<SymOp::kAnd>();
    case SymOp::kOr: return f.template operator()<SymOp::kOr>();
    case SymOp::kNot: return f.template operator()<SymOp::kNot>();
    case SymOp::kCeil: return f.template operator()<SymOp::kCeil>();
    case SymOp::kFloor: return f.template operator()<SymOp::kFloor>();
    case SymOp::kAbs: return f.template operator()<SymOp::kAbs>();
    case SymOp::kLog2: return f.template operator()<SymOp::kLog2>();
    case SymOp::kTwosPart: return f.template operator()<SymOp::kTwosPart>();
    case SymOp::kParam:
    case SymOp::kCoefficient:
    case SymOp::kConstant:
    case SymOp::kSelect: break;
  }
  PRUNERC_UNREACHABLE("operation with one or two operands");
}

inline double apply(SymOp op, double a, double b) {
  return dispatch(op, [&]<SymOp kOp>() { return symbol::apply<kOp>(a, b); });
}

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_SYMBOL_OP_H_
