#include "codegen/cpu/vector_math_ops.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>
#include <numeric>
#include <vector>

namespace prunerc::codegen {

using V = MathOps::V;

namespace {

llvm::Type* shaped(llvm::Type* scalar, llvm::Type* like) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

unsigned num_lanes(llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector == nullptr ? 1 : vector->getNumElements();
}

// What `f` makes of `native` lanes at a time, of which it gets the numbers; -1 where there is none.
template <typename F>
V in_parts(llvm::IRBuilderBase& ir, unsigned lanes, unsigned native, F&& f) {
  V whole = nullptr;
  for (unsigned first = 0; first < lanes; first += native) {
    const unsigned count = std::min(native, lanes - first);
    std::vector<int> part(native, -1);
    std::iota(part.begin(), part.begin() + count, static_cast<int>(first));
    V result = f(part);
    if (lanes == native) return result;
    // Put where it belongs: the lanes before it are there already.
    std::vector<int> widened(lanes, -1), placed(lanes);
    for (unsigned i = 0; i < count; ++i) widened[first + i] = static_cast<int>(i);
    V wide = ir.CreateShuffleVector(result, widened);
    for (unsigned i = 0; i < lanes; ++i) placed[i] = static_cast<int>(i < first ? i : lanes + i);
    whole = whole == nullptr ? wide : ir.CreateShuffleVector(whole, wide, placed);
  }
  return whole;
}

}  // namespace

MathOps::MathOps(llvm::IRBuilderBase& builder, V like, bool with_avx512)
    : ir(builder),
      has_avx512(with_avx512),
      type_(like->getType()),
      f64_(type_->getScalarType()->isDoubleTy()) {
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

bool MathOps::has_scale() const {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type_);
  return has_avx512 && vector != nullptr && vector->getNumElements() % (f64_ ? 8 : 16) == 0;
}

V MathOps::scale(V a, V n) const {
  const llvm::Intrinsic::ID id = f64_ ? llvm::Intrinsic::x86_avx512_mask_scalef_pd_512
                                      : llvm::Intrinsic::x86_avx512_mask_scalef_ps_512;
  constexpr uint32_t kCurrentRounding = 4;
  V mask = f64_ ? static_cast<V>(ir.getInt8(0xFF)) : static_cast<V>(ir.getInt16(0xFFFF));
  return in_parts(ir, num_lanes(type_), f64_ ? 8 : 16, [&](const std::vector<int>& part) {
    V x = ir.CreateShuffleVector(a, part), y = ir.CreateShuffleVector(n, part);
    return ir.CreateIntrinsic(id, {}, {x, y, x, mask, ir.getInt32(kCurrentRounding)});
  });
}

V MathOps::lookup(std::span<const double, 16> table, V i) const {
  std::vector<llvm::Constant*> entries;
  for (const double v : table) entries.push_back(llvm::ConstantFP::get(ir.getFloatTy(), v));
  V all = llvm::ConstantVector::get(entries);
  const bool is_scalar = !type_->isVectorTy();
  V lanes = is_scalar ? ir.CreateVectorSplat(1, i) : i;
  V found = in_parts(ir, num_lanes(type_), 16, [&](const std::vector<int>& part) {
    return ir.CreateIntrinsic(llvm::Intrinsic::x86_avx512_permvar_sf_512, {},
                              {all, ir.CreateShuffleVector(lanes, part)});
  });
  return is_scalar ? ir.CreateExtractElement(found, uint64_t{0}) : found;
}

V MathOps::widen(V a) const { return ir.CreateFPExt(a, shaped(ir.getDoubleTy(), a->getType())); }
V MathOps::narrow(V a) const { return ir.CreateFPTrunc(a, shaped(ir.getFloatTy(), a->getType())); }

}  // namespace prunerc::codegen
