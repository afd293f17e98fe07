#include "codegen/cpu/vector_math_ops.h"

#include <llvm/IR/IRBuilder.h>

namespace prunerc::codegen {

using V = MathOps::V;

namespace {

llvm::Type* shaped(llvm::Type* scalar, llvm::Type* like) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

}  // namespace

MathOps::MathOps(llvm::IRBuilderBase& builder, V like)
    : ir(builder), type_(like->getType()), f64_(type_->getScalarType()->isDoubleTy()) {
  int_type_ = shaped(f64_ ? builder.getInt64Ty() : builder.getInt32Ty(), type_);
}

V MathOps::k(double v) const { return llvm::ConstantFP::get(type_, v); }
V MathOps::ki(int64_t v) const {
  return llvm::ConstantInt::get(int_type_, static_cast<uint64_t>(v));
}
V MathOps::add(V a, V b) const { return ir.CreateFAdd(a, b); }
V MathOps::sub(V a, V b) const { return ir.CreateFSub(a, b); }
V MathOps::mul(V a, V b) const { return ir.CreateFMul(a, b); }
V MathOps::div(V a, V b) const { return ir.CreateFDiv(a, b); }
V MathOps::fma(V a, V b, V c) const {
  return ir.CreateIntrinsic(llvm::Intrinsic::fma, {a->getType()}, {a, b, c});
}
V MathOps::neg(V a) const { return ir.CreateFNeg(a); }
V MathOps::abs(V a) const { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, a); }
V MathOps::sqrt(V a) const { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::sqrt, a); }
V MathOps::floor(V a) const { return ir.CreateUnaryIntrinsic(llvm::Intrinsic::floor, a); }
V MathOps::copy_sign(V magnitude, V sign) const {
  return ir.CreateBinaryIntrinsic(llvm::Intrinsic::copysign, magnitude, sign);
}
V MathOps::lt(V a, V b) const { return ir.CreateFCmpOLT(a, b); }
V MathOps::eq(V a, V b) const { return ir.CreateFCmpOEQ(a, b); }
V MathOps::is_nan(V a) const { return ir.CreateFCmpUNO(a, a); }
V MathOps::select(V condition, V a, V b) const { return ir.CreateSelect(condition, a, b); }
V MathOps::logical_and(V a, V b) const { return ir.CreateAnd(a, b); }
V MathOps::logical_not(V a) const { return ir.CreateNot(a); }
V MathOps::clamp(V a, double lo, double hi) const {
  a = select(lt(k(hi), a), k(hi), a);
  return select(lt(a, k(lo)), k(lo), a);
}
V MathOps::bits(V a) const { return ir.CreateBitCast(a, int_type_); }
V MathOps::from_bits(V a) const { return ir.CreateBitCast(a, type_); }
V MathOps::iadd(V a, V b) const { return ir.CreateAdd(a, b); }
V MathOps::isub(V a, V b) const { return ir.CreateSub(a, b); }
V MathOps::iand(V a, V b) const { return ir.CreateAnd(a, b); }
V MathOps::ior(V a, V b) const { return ir.CreateOr(a, b); }
V MathOps::ixor(V a, V b) const { return ir.CreateXor(a, b); }
V MathOps::shl(V a, int64_t n) const { return ir.CreateShl(a, ki(n)); }
V MathOps::lshr(V a, int64_t n) const { return ir.CreateLShr(a, ki(n)); }
V MathOps::ashr(V a, int64_t n) const { return ir.CreateAShr(a, ki(n)); }
V MathOps::ieq(V a, V b) const { return ir.CreateICmpEQ(a, b); }
V MathOps::ilt(V a, V b) const { return ir.CreateICmpSLT(a, b); }

V MathOps::poly(std::span<const double> c, V x) const {
  V sum = k(c.back());
  for (std::size_t i = c.size() - 1; i-- > 0;) sum = fma(sum, x, k(c[i]));
  return sum;
}

V MathOps::pow2(V n) const {
  return f64_ ? from_bits(shl(iadd(n, ki(1023)), 52)) : from_bits(shl(iadd(n, ki(127)), 23));
}

V MathOps::widen(V a) const { return ir.CreateFPExt(a, shaped(ir.getDoubleTy(), a->getType())); }
V MathOps::narrow(V a) const { return ir.CreateFPTrunc(a, shaped(ir.getFloatTy(), a->getType())); }

}  // namespace prunerc::codegen
