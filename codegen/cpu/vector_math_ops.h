// Short names for the operations that mathematical functions are made of; private to vector_math.
#ifndef PRUNERC_CODEGEN_CPU_VECTOR_MATH_OPS_H_
#define PRUNERC_CODEGEN_CPU_VECTOR_MATH_OPS_H_

#include <cstdint>
#include <span>

namespace llvm {
class IRBuilderBase;
class Type;
class Value;
}  // namespace llvm

namespace prunerc::codegen {

/// Operations on values of one floating-point type, f32 or f64, scalar or vector, and the integers
/// of its width.
class MathOps {
 public:
  using V = llvm::Value*;
  /// For the type of `like`; has_avx512: the target has AVX-512F.
  MathOps(llvm::IRBuilderBase& builder, V like, bool has_avx512);

  bool is_f64() const { return f64_; }
  V k(double v) const;  // constants
  V ki(int64_t v) const;
  V add(V a, V b) const;
  V sub(V a, V b) const;
  V mul(V a, V b) const;
  V div(V a, V b) const;
  V fma(V a, V b, V c) const;  // a * b + c, rounded once
  V neg(V a) const;
  V abs(V a) const;
  V sqrt(V a) const;
  V floor(V a) const;
  V copy_sign(V magnitude, V sign) const;
  V lt(V a, V b) const;  // false for NaN
  V eq(V a, V b) const;
  V is_nan(V a) const;
  V select(V condition, V a, V b) const;
  V logical_and(V a, V b) const;
  V logical_not(V a) const;
  V clamp(V a, double lo, double hi) const;  // NaN stays
  V bits(V a) const;                         // as integers
  V from_bits(V a) const;
  V iadd(V a, V b) const;
  V isub(V a, V b) const;
  V iand(V a, V b) const;
  V ior(V a, V b) const;
  V ixor(V a, V b) const;
  V shl(V a, int64_t n) const;
  V lshr(V a, int64_t n) const;
  V ashr(V a, int64_t n) const;
  V ieq(V a, V b) const;
  V ilt(V a, V b) const;
  /// c[0] + c[1] x + ...
  V poly(std::span<const double> coefficients, V x) const;
  /// 2^n for integers n within the exponents of normal numbers.
  V pow2(V n) const;
  /// a * 2^n for whole numbers n of the same type, rounded once. One instruction of AVX-512 does that.
  bool has_scale() const;
  V scale(V a, V n) const;
  /// table[i % 16] for whole numbers i, of f32s; one instruction of AVX-512.
  bool has_lookup() const { return has_avx512 && !f64_; }
  V lookup(std::span<const double, 16> table, V i) const;
  /// f32 to f64 of the same shape, and back.
  V widen(V a) const;
  V narrow(V a) const;

  llvm::IRBuilderBase& ir;
  const bool has_avx512;

 private:
  llvm::Type* type_;
  llvm::Type* int_type_;
  bool f64_;
};

/// sin(x) (quadrant 0) or cos(x) (quadrant 1).
llvm::Value* emit_sin_cos(const MathOps& m, llvm::Value* x, int quadrant);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_VECTOR_MATH_OPS_H_
