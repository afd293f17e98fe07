// sin and cos: reduction to a quarter turn, then a polynomial of each.
#include "codegen/cpu/vector_math_ops.h"
#include "codegen/cpu/vector_math_table.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <limits>
#include <vector>

namespace prunerc::codegen {
namespace {

using V = MathOps::V;

constexpr double kTwoOverPi = 0.6366197723675814;
// pi / 2 as a sum, each part rounded to nearest.
constexpr double kPiOver2[] = {1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33};
constexpr double kMagic =
    6755399441055744.0;  // 1.5 * 2^52: its sum with x holds the integer nearest to x

constexpr int kBigExponents = sizeof(kTwoPowModTwoPi) / sizeof(kTwoPowModTwoPi[0]);

// Column `part` of the table of powers of two modulo 2 pi.
llvm::GlobalVariable* table(llvm::Module& module, int part) {
  const std::string name = ".mod2pi." + std::to_string(part);
  if (llvm::GlobalVariable* known = module.getNamedGlobal(name)) return known;
  std::vector<double> column;
  for (const auto& row : kTwoPowModTwoPi) column.push_back(row[part]);
  llvm::Constant* data = llvm::ConstantDataArray::get(module.getContext(), column);
  return new llvm::GlobalVariable(module, data->getType(), true, llvm::GlobalValue::PrivateLinkage,
                                  data, name);
}

// table[index], read only where `wanted`, `otherwise` elsewhere.
V look_up(const MathOps& m, int part, V index, V wanted, V otherwise) {
  llvm::IRBuilderBase& b = m.ir;
  llvm::GlobalVariable* data = table(*b.GetInsertBlock()->getModule(), part);
  if (!index->getType()->isVectorTy()) {
    V safe = b.CreateSelect(wanted, index, m.ki(0));
    V loaded = b.CreateLoad(b.getDoubleTy(), b.CreateGEP(b.getDoubleTy(), data, safe));
    return b.CreateSelect(wanted, loaded, otherwise);
  }
  V pointers = b.CreateGEP(b.getDoubleTy(), data, index);
  return b.CreateMaskedGather(otherwise->getType(), pointers, llvm::Align(8), wanted, otherwise);
}

// x (an f32 held as f64) = n pi / 2 + r. Large x is M 2^e with an integer M of 24 bits, and
// equivalent to M times (2^e modulo 2 pi), whose leading parts give exact products.
struct Reduced {
  V r, quadrant;
};
Reduced reduce_f32(const MathOps& m, V x) {
  V exponent = m.iand(m.lshr(m.bits(x), 52), m.ki(0x7FF));
  V row = m.isub(exponent, m.ki(1023 + 23 + kFirstBigExponent));
  V is_big = m.logical_and(m.ilt(m.ki(-1), row), m.ilt(row, m.ki(kBigExponents)));
  V scale =
      m.from_bits(m.shl(m.isub(m.ki(2 * 1023 + 23), exponent), 52));  // 2^(23 - exponent of x)
  V factor = m.select(is_big, m.mul(x, scale), x);
  V part0 = look_up(m, 0, row, is_big, m.k(1));
  V part1 = look_up(m, 1, row, is_big, m.k(0));
  V part2 = look_up(m, 2, row, is_big, m.k(0));
  V y = m.mul(factor, part0);
  V t = m.fma(y, m.k(kTwoOverPi), m.k(kMagic));
  V n = m.sub(t, m.k(kMagic));
  V r = m.fma(n, m.k(-kPiOver2[0]), y);
  r = m.fma(factor, part1, r);
  r = m.fma(n, m.k(-kPiOver2[1]), r);
  r = m.fma(factor, part2, r);
  return {r, m.bits(t)};
}

// sin or cos of r by the quadrant's low bits, with polynomials good for the type of the result.
V by_quadrant(const MathOps& m, V r, V r_low, V quadrant, std::span<const double> sin_coefs,
              std::span<const double> cos_coefs) {
  V z = m.mul(r, r);
  V s = m.mul(m.mul(r, z), m.poly(sin_coefs, z));
  V half = m.mul(m.k(0.5), z);
  V w = m.sub(m.k(1), half);
  V c = m.fma(m.mul(z, z), m.poly(cos_coefs, z), m.sub(m.sub(m.k(1), w), half));
  if (r_low != nullptr) {
    s = m.add(s, m.fma(m.neg(half), r_low, r_low));
    c = m.fma(m.neg(r), r_low, c);
  }
  s = m.add(r, s);
  c = m.add(w, c);
  V odd = m.ieq(m.iand(quadrant, m.ki(1)), m.ki(1));
  V value = m.select(odd, c, s);
  V sign = m.shl(m.iand(quadrant, m.ki(2)), 62);
  return m.from_bits(m.ixor(m.bits(value), sign));
}

}  // namespace

V emit_sin_cos(const MathOps& m, V x, int quadrant) {
  V infinite = m.eq(m.abs(x), m.k(std::numeric_limits<double>::infinity()));
  V nan = m.k(std::numeric_limits<double>::quiet_NaN());
  if (!m.is_f64()) {
    V wide_x = m.widen(x);
    const MathOps wide(m.ir, wide_x, m.has_avx512);
    const Reduced parts = reduce_f32(wide, wide_x);
    V q = wide.iadd(parts.quadrant, wide.ki(quadrant));
    // f32 results need few terms; -0 is kept by the sum with r.
    V result = m.narrow(by_quadrant(wide, parts.r, nullptr, q, kSinF32, kCosF32));
    return m.select(infinite, nan, quadrant == 0 ? m.select(m.eq(x, m.k(0)), x, result) : result);
  }
  V t = m.fma(x, m.k(kTwoOverPi), m.k(kMagic));
  V n = m.sub(t, m.k(kMagic));
  // x - n pi / 2 in double length.
  V a = m.fma(n, m.k(-kPiOver2[0]), x);
  V product = m.mul(n, m.k(kPiOver2[1]));
  V product_low = m.fma(n, m.k(kPiOver2[1]), m.neg(product));
  V r = m.sub(a, product);
  V low = m.sub(m.sub(m.sub(a, r), product), product_low);
  low = m.fma(n, m.k(-kPiOver2[2]), low);
  V q = m.iadd(m.bits(t), m.ki(quadrant));
  V result = by_quadrant(m, r, low, q, kSinF64, kCosF64);
  // Where too few digits of pi are left, the polynomials are far outside of where they hold.
  result = m.select(m.lt(m.k(1), result), m.k(1), m.select(m.lt(result, m.k(-1)), m.k(-1), result));
  return m.select(infinite, nan, quadrant == 0 ? m.select(m.eq(x, m.k(0)), x, result) : result);
}

}  // namespace prunerc::codegen
