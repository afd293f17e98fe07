#include "codegen/cpu/vector_math.h"

#include "codegen/cpu/legalize.h"
#include "codegen/cpu/vector_math_ops.h"
#include "codegen/cpu/vector_math_table.h"
#include "ir/support/check.h"

#include <llvm/IR/IRBuilder.h>

#include <limits>

namespace prunerc::codegen {
namespace {

using V = MathOps::V;

constexpr double kLog2E = 1.4426950408889634;
// ln(2) in two parts; products of the first with exponents are exact.
constexpr double kLn2HiF32 = 0.693145751953125, kLn2LoF32 = 1.428606765330187e-06;
constexpr double kLn2HiF64 = 0.6931471803691238, kLn2LoF64 = 1.9082149292705877e-10;
// Adding it leaves the nearest integer in the low bits.
constexpr double kMagicF32 = 12582912.0, kMagicF64 = 6755399441055744.0;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// x = n ln(2) + r with |r| <= ln(2) / 2. `low` is an addition to x that may be null.
struct ExpParts {
  V r, n;   // n as an integer
  V whole;  // n as a number
};
ExpParts reduce_exp(const MathOps& m, V x, V low = nullptr) {
  V magic = m.k(m.is_f64() ? kMagicF64 : kMagicF32);
  V t = m.fma(x, m.k(kLog2E), magic);
  V n = m.sub(t, magic);
  V r = m.fma(n, m.k(m.is_f64() ? -kLn2HiF64 : -kLn2HiF32), x);
  if (low != nullptr) r = m.add(r, low);
  r = m.fma(n, m.k(m.is_f64() ? -kLn2LoF64 : -kLn2LoF32), r);
  return {r, m.isub(m.bits(t), m.bits(magic)), n};
}

// e^r - 1 for a reduced argument.
V expm1_reduced(const MathOps& m, V r) {
  V q = m.is_f64() ? m.poly(kExpF64, r) : m.poly(kExpF32, r);
  return m.fma(m.mul(r, r), q, r);
}

V emit_exp(const MathOps& m, V x, V low = nullptr) {
  // Beyond these ends the result is infinite or zero whatever comes.
  x = m.is_f64() ? m.clamp(x, -746, 710) : m.clamp(x, -104, 89);
  const ExpParts e = reduce_exp(m, x, low);
  V p = m.add(expm1_reduced(m, e.r), m.k(1));
  if (m.has_scale()) return m.scale(p, e.whole);
  // Two factors, each a normal number: overflow and gradual underflow come out right.
  V half = m.ashr(e.n, 1);
  return m.mul(m.mul(p, m.pow2(half)), m.pow2(m.isub(e.n, half)));
}

// e^x - 1 for x in [0, 90], accurate near 0.
V emit_expm1_positive(const MathOps& m, V x) {
  const ExpParts e = reduce_exp(m, x);
  V scale = m.pow2(e.n);
  return m.fma(scale, expm1_reduced(m, e.r), m.sub(scale, m.k(1)));
}

// x = 2^e (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)), for finite x > 0.
struct LogParts {
  V f, e;
};
LogParts split_log(const MathOps& m, V x) {
  const bool f64 = m.is_f64();
  const double smallest = f64 ? 2.2250738585072014e-308 : 1.1754943508222875e-38;
  V is_tiny = m.lt(x, m.k(smallest));
  x = m.select(is_tiny, m.mul(x, m.k(f64 ? 18014398509481984.0 : 33554432.0)), x);
  const int64_t one = f64 ? 0x3FF0000000000000 : 0x3F800000;
  const int64_t root = f64 ? 0x3FE6A09E667F3BCD : 0x3F3504F3;
  const int64_t mantissa = f64 ? 0x000FFFFFFFFFFFFF : 0x007FFFFF;
  V ix = m.iadd(m.bits(x), m.ki(one - root));
  V f = m.sub(m.from_bits(m.iadd(m.iand(ix, m.ki(mantissa)), m.ki(root))), m.k(1));
  // Exponent bits under those of 2^52 (2^23) are a number without a conversion.
  V exponent = f64 ? m.ior(m.lshr(ix, 52), m.ki(0x4330000000000000))
                   : m.ior(m.lshr(ix, 23), m.ki(0x4B000000));
  V e = m.sub(m.from_bits(exponent), m.k(f64 ? 4503599627370496.0 + 1023 : 8388608.0 + 127));
  return {f, m.select(is_tiny, m.sub(e, m.k(f64 ? 54 : 25)), e)};
}

V log_specials(const MathOps& m, V x, V result) {
  result = m.select(m.eq(x, m.k(kInf)), m.k(kInf), result);
  result = m.select(m.eq(x, m.k(0)), m.k(-kInf), result);
  result = m.select(m.lt(x, m.k(0)), m.k(kNan), result);
  return m.select(m.is_nan(x), x, result);
}

V emit_log(const MathOps& m, V x) {
  const LogParts p = split_log(m, x);
  V ff = m.mul(p.f, p.f);
  V result = nullptr;
  if (!m.is_f64()) {
    V y = m.mul(m.mul(p.f, ff), m.poly(kLogF32, p.f));
    y = m.fma(p.e, m.k(kLn2LoF32), y);
    y = m.fma(m.k(-0.5), ff, y);
    result = m.fma(p.e, m.k(kLn2HiF32), m.add(p.f, y));
  } else {
    // ln(1 + f) = 2 atanh(s) with s = f / (2 + f), as f - (f^2/2 - s (f^2/2 + R)).
    V s = m.div(p.f, m.add(p.f, m.k(2)));
    V z = m.mul(s, s);
    V r = m.mul(z, m.poly(kLogF64, z));
    V half = m.mul(m.k(0.5), ff);
    V inner = m.fma(p.e, m.k(kLn2LoF64), m.mul(s, m.add(half, r)));
    result = m.fma(p.e, m.k(kLn2HiF64), m.sub(p.f, m.sub(half, inner)));
  }
  return log_specials(m, x, result);
}

V emit_tanh(const MathOps& m, V x) {
  // Beyond the end the result rounds to 1.
  V t = emit_expm1_positive(m, m.clamp(m.mul(m.abs(x), m.k(2)), 0, m.is_f64() ? 44 : 20));
  return m.copy_sign(m.div(t, m.add(t, m.k(2))), x);
}

V emit_sigmoid(const MathOps& m, V x) {
  V e = emit_exp(m, m.neg(m.abs(x)));
  V numerator = m.select(m.lt(x, m.k(0)), e, m.k(1));
  return m.div(numerator, m.add(e, m.k(1)));
}

// Each lane looks up the polynomial of the nearest n h. Beyond the last one the result rounds to 1.
V erf_by_table(const MathOps& m, V x) {
  V a = m.abs(x), end = m.k(15.4 * kErfStep);
  a = m.select(m.lt(end, a), end, a);
  V magic = m.k(kMagicF32);
  V t = m.fma(a, m.k(1 / kErfStep), magic);
  V n = m.sub(t, magic);
  V d = m.fma(n, m.k(-kErfStep), a);
  V q = m.lookup(kErfTableF32[5], m.bits(t));
  for (int i = 4; i > 0; --i) q = m.fma(q, d, m.lookup(kErfTableF32[i], m.bits(t)));
  V start = m.select(m.eq(n, m.k(0)), d, m.lookup(kErfTableF32[0], m.bits(t)));
  return m.copy_sign(m.fma(d, q, start), x);
}

V emit_erf(const MathOps& m, V x) {
  if (m.has_lookup()) return erf_by_table(m, x);
  V a = m.abs(x);
  V z = m.mul(x, x);
  V small = m.fma(a, m.is_f64() ? m.poly(kErfSmallF64, z) : m.poly(kErfSmallF32, z), a);
  V far = m.clamp(a, 1, m.is_f64() ? 6 : 4);
  V log_erfc = m.is_f64() ? m.poly(kErfLargeF64, m.sub(far, m.k(3.5)))
                          : m.poly(kErfLargeF32, m.sub(far, m.k(2.5)));
  V large = m.sub(m.k(1), emit_exp(m, log_erfc));
  V result = m.select(m.lt(a, m.k(1)), small, large);
  return m.copy_sign(m.select(m.is_nan(x), x, result), x);
}

// The sum hi + lo of an f64 product or sum, exactly.
struct Pair {
  V hi, lo;
};
Pair two_product(const MathOps& m, V a, V b) {
  V hi = m.mul(a, b);
  return {hi, m.fma(a, b, m.neg(hi))};
}
Pair quick_two_sum(const MathOps& m, V a, V b) {  // |a| >= |b| or a = 0
  V hi = m.add(a, b);
  return {hi, m.sub(b, m.sub(hi, a))};
}
Pair two_sum(const MathOps& m, V a, V b) {
  V hi = m.add(a, b);
  V part = m.sub(hi, a);
  return {hi, m.add(m.sub(a, m.sub(hi, part)), m.sub(b, part))};
}

// ln(x) with about 2^-65 relative error for finite x > 0: the first two terms of the series in
// double length.
Pair log_pair(const MathOps& m, V x) {
  const LogParts p = split_log(m, x);
  V denominator = m.add(p.f, m.k(2));
  V denominator_lo = m.sub(p.f, m.sub(denominator, m.k(2)));
  V s = m.div(p.f, denominator);
  V rest = m.fma(m.neg(s), denominator, p.f);
  V s_lo = m.div(m.fma(m.neg(s), denominator_lo, rest), denominator);
  const Pair z = two_product(m, s, s);
  V z_lo = m.fma(m.mul(m.k(2), s), s_lo, z.lo);
  const Pair cube = two_product(m, z.hi, s);
  V cube_lo = m.add(cube.lo, m.fma(z_lo, s, m.mul(z.hi, s_lo)));
  constexpr double kTwoThirds = 0.6666666666666666, kTwoThirdsLo = 3.700743415417188e-17;
  const Pair third = two_product(m, cube.hi, m.k(kTwoThirds));
  V third_lo = m.add(third.lo, m.fma(cube_lo, m.k(kTwoThirds), m.mul(cube.hi, m.k(kTwoThirdsLo))));
  V tail = m.mul(m.mul(cube.hi, z.hi), m.poly(kPowLogF64, z.hi));
  const Pair linear = two_sum(m, m.mul(m.k(2), s), third.hi);
  V linear_lo = m.add(linear.lo, m.add(m.mul(m.k(2), s_lo), m.add(third_lo, tail)));
  constexpr double kLn2 = 0.6931471805599453, kLn2Rest = 2.3190468138462996e-17;
  const Pair exponent = two_product(m, p.e, m.k(kLn2));
  const Pair sum = two_sum(m, exponent.hi, linear.hi);
  V lo = m.add(sum.lo, m.add(m.fma(p.e, m.k(kLn2Rest), exponent.lo), linear_lo));
  return quick_two_sum(m, sum.hi, lo);
}

// |x|^y for finite |x| > 0 and finite y, as f64.
V pow_magnitude(const MathOps& m, V a, V y) {
  const Pair log = log_pair(m, a);
  const Pair product = two_product(m, log.hi, y);
  V low = m.fma(log.lo, y, product.lo);
  // Where the power over- or underflows the correction is meaningless (and may be NaN).
  V in_range = m.lt(m.abs(product.hi), m.k(800));
  return emit_exp(m, product.hi, m.select(in_range, low, m.k(0)));
}

V emit_pow(const MathOps& m, V x, V y) {
  if (!m.is_f64()) {
    V wide_x = m.widen(x);
    const MathOps wide(m.ir, wide_x, m.has_avx512);
    // f32 powers are far inside what f64 logarithms can tell; the special cases are the same.
    return m.narrow(emit_pow(wide, wide_x, m.widen(y)));
  }
  V a = m.abs(x);
  V zero = m.k(0), one = m.k(1), inf = m.k(kInf);
  V y_negative = m.lt(y, zero);
  V result = pow_magnitude(m, a, y);
  // x = 0 and infinities: 0 or inf, by the direction of the power.
  V edge_zero = m.select(y_negative, inf, zero);
  V edge_inf = m.select(y_negative, zero, inf);
  result = m.select(m.eq(a, zero), edge_zero, result);
  result = m.select(m.eq(a, inf), edge_inf, result);
  V y_infinite = m.eq(m.abs(y), inf);
  V to_infinity = m.select(m.lt(a, one), edge_zero, edge_inf);
  result = m.select(y_infinite, to_infinity, result);
  // Sign and domain of negative bases.
  V is_integer = m.eq(m.floor(y), y);
  V half = m.mul(y, m.k(0.5));
  V is_odd = m.logical_and(is_integer, m.logical_not(m.eq(m.floor(half), half)));
  V negative = m.ilt(m.bits(x), m.ki(0));
  result = m.select(m.logical_and(negative, is_odd), m.neg(result), result);
  V undefined =
      m.logical_and(m.logical_and(m.lt(x, zero), m.lt(a, inf)), m.logical_not(is_integer));
  result = m.select(undefined, m.k(kNan), result);
  result = m.select(m.is_nan(x), x, result);
  result = m.select(m.is_nan(y), y, result);
  result = m.select(m.logical_and(m.eq(a, one), y_infinite), one, result);
  result = m.select(m.eq(x, one), one, result);
  return m.select(m.eq(y, zero), one, result);
}

constexpr MathAccuracy kAccuracy[] = {
    {ir::Intrinsic::kExp, 1, 1},       {ir::Intrinsic::kLog, 1, 1},
    {ir::Intrinsic::kRsqrt, 1.5, 1.5}, {ir::Intrinsic::kTanh, 2.5, 2.5},
    {ir::Intrinsic::kErf, 2, 3},       {ir::Intrinsic::kSigmoid, 2.5, 2.5},
    {ir::Intrinsic::kSin, 1, 1},       {ir::Intrinsic::kCos, 1, 1},
    {ir::Intrinsic::kPow, 1, 1.5},
};

}  // namespace

std::span<const MathAccuracy> math_accuracy() { return kAccuracy; }

V emit_intrinsic(llvm::IRBuilderBase& b, ir::Intrinsic intrinsic, std::span<V const> args,
                 bool has_avx512) {
  const MathOps m(b, args[0], has_avx512);
  switch (intrinsic) {
    case ir::Intrinsic::kExp: return emit_exp(m, args[0]);
    case ir::Intrinsic::kLog: return emit_log(m, args[0]);
    case ir::Intrinsic::kSqrt: return m.sqrt(args[0]);
    case ir::Intrinsic::kRsqrt: return m.div(m.k(1), m.sqrt(args[0]));
    case ir::Intrinsic::kTanh: return emit_tanh(m, args[0]);
    case ir::Intrinsic::kErf: return emit_erf(m, args[0]);
    case ir::Intrinsic::kSigmoid: return emit_sigmoid(m, args[0]);
    case ir::Intrinsic::kSin: return emit_sin_cos(m, args[0], 0);
    case ir::Intrinsic::kCos: return emit_sin_cos(m, args[0], 1);
    case ir::Intrinsic::kFloor: return m.floor(args[0]);
    case ir::Intrinsic::kCeil: return b.CreateUnaryIntrinsic(llvm::Intrinsic::ceil, args[0]);
    case ir::Intrinsic::kRound: return b.CreateUnaryIntrinsic(llvm::Intrinsic::roundeven, args[0]);
    case ir::Intrinsic::kPow: return emit_pow(m, args[0], args[1]);
    case ir::Intrinsic::kFma: return rounded_once(m.fma(args[0], args[1], args[2]));
    case ir::Intrinsic::kAbs: return m.abs(args[0]);
  }
  PRUNERC_UNREACHABLE("intrinsic");
}

}  // namespace prunerc::codegen
