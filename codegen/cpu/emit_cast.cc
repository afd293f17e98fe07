// Conversions between types, and between registers and memory.
#include "codegen/cpu/emitter.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

namespace prunerc::codegen {

using namespace ir;
using llvm::Value;

Value* Emitter::constant(DType dtype, double value, int64_t int_value) {
  llvm::Type* type = register_type(dtype);
  if (is_float(dtype)) return llvm::ConstantFP::get(type, value);
  return llvm::ConstantInt::get(type, static_cast<uint64_t>(int_value), true);
}

// Brings the f32 that holds an f16 or bf16 result back to a value of that type.
Value* Emitter::round_register(Value* v, DType dtype) {
  if (dtype != DType::kF16 && dtype != DType::kBF16) return v;
  return from_memory(to_memory(v, dtype), dtype);
}

// The 16 bits of a bfloat16, nearest even. NaN stays NaN.
Value* Emitter::bf16_bits(Value* v) {
  llvm::Type* i32 = like(ir_.getInt32Ty(), v);
  llvm::Type* i16 = like(ir_.getInt16Ty(), v);
  auto k = [&](uint64_t c) { return llvm::ConstantInt::get(i32, c); };
  Value* bits = ir_.CreateBitCast(v, i32);
  Value* lsb = ir_.CreateAnd(ir_.CreateLShr(bits, k(16)), k(1));
  Value* rounded = ir_.CreateAdd(bits, ir_.CreateAdd(lsb, k(0x7FFF)));
  Value* nan = ir_.CreateOr(bits, k(0x00400000));
  Value* is_nan = ir_.CreateFCmpUNO(v, v);
  return ir_.CreateTrunc(ir_.CreateLShr(ir_.CreateSelect(is_nan, nan, rounded), k(16)), i16);
}

Value* Emitter::to_memory(Value* v, DType dtype) {
  switch (dtype) {
    case DType::kF16: {
      Value* half = ir_.CreateFPTrunc(v, like(ir_.getHalfTy(), v));
      return ir_.CreateBitCast(half, like(ir_.getInt16Ty(), v));
    }
    case DType::kBF16: return bf16_bits(v);
    case DType::kBool: return ir_.CreateZExt(v, like(ir_.getInt8Ty(), v));
    default: return v;
  }
}

Value* Emitter::from_memory(Value* v, DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return ir_.CreateFPExt(ir_.CreateBitCast(v, like(ir_.getHalfTy(), v)),
                             like(ir_.getFloatTy(), v));
    case DType::kBF16: {
      Value* wide = ir_.CreateZExt(v, like(ir_.getInt32Ty(), v));
      wide = ir_.CreateShl(wide, llvm::ConstantInt::get(wide->getType(), 16));
      return ir_.CreateBitCast(wide, like(ir_.getFloatTy(), v));
    }
    case DType::kBool: return ir_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
    default: return v;
  }
}

// f64 to f32 rounded to odd: a second rounding to a narrower type is then as if from the f64.
Value* Emitter::f64_to_f32_odd(Value* v) {
  llvm::Type* f32 = like(ir_.getFloatTy(), v);
  llvm::Type* i32 = like(ir_.getInt32Ty(), v);
  Value* nearest = ir_.CreateFPTrunc(v, f32);
  Value* back = ir_.CreateFPExt(nearest, v->getType());
  Value* magnitude = ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, v);
  Value* back_magnitude = ir_.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back);
  Value* bits = ir_.CreateBitCast(nearest, i32);
  Value* too_large = ir_.CreateFCmpOGT(back_magnitude, magnitude);
  Value* toward_zero = ir_.CreateSub(bits, ir_.CreateZExt(too_large, i32));
  Value* inexact = ir_.CreateZExt(ir_.CreateFCmpONE(back, v), i32);
  return ir_.CreateBitCast(ir_.CreateOr(toward_zero, inexact), f32);
}

// A float as a byte: LLVM takes saturating conversions of vectors to bytes apart, lane by lane.
Value* Emitter::saturated_byte(Value* v, DType to) {
  llvm::Type* type = v->getType();
  Value* least = llvm::ConstantFP::get(type, static_cast<double>(min_int(to)));
  Value* most = llvm::ConstantFP::get(type, static_cast<double>(max_int(to)));
  Value* bounded = ir_.CreateSelect(ir_.CreateFCmpOGT(least, v), least, v);
  bounded = ir_.CreateSelect(ir_.CreateFCmpOLT(most, bounded), most, bounded);
  Value* is_number = ir_.CreateFCmpORD(v, v);
  bounded = ir_.CreateSelect(is_number, bounded, llvm::Constant::getNullValue(type));
  Value* wide = ir_.CreateFPToSI(bounded, like(ir_.getInt32Ty(), v));
  return ir_.CreateTrunc(wide, like(ir_.getInt8Ty(), v));
}

Value* Emitter::cast(Value* v, DType from, DType to) {
  if (from == to) return v;
  llvm::Type* type = like(register_type(to), v);
  const bool narrow = to == DType::kF16 || to == DType::kBF16;
  if (is_float(from)) {
    if (to == DType::kF64) return ir_.CreateFPExt(v, type);
    if (is_float(to)) {
      if (from == DType::kF64) v = narrow ? f64_to_f32_odd(v) : ir_.CreateFPTrunc(v, type);
      return round_register(v, to);
    }
    if (is_bool(to)) return ir_.CreateFCmpUNE(v, llvm::Constant::getNullValue(v->getType()));
    if (to == DType::kI8 || to == DType::kU8) return saturated_byte(v, to);
    return ir_.CreateIntrinsic(llvm::Intrinsic::fptosi_sat, {type, v->getType()}, {v});
  }
  const bool from_unsigned = from == DType::kU8 || is_bool(from);
  if (is_float(to)) {
    // Wide integers go to the narrow types through f64 and a sticky bit, which keeps the rounding
    // single for all values that an f64 holds exactly.
    if (narrow && (from == DType::kI64 || from == DType::kI32)) {
      return round_register(f64_to_f32_odd(ir_.CreateSIToFP(v, like(ir_.getDoubleTy(), v))), to);
    }
    v = from_unsigned ? ir_.CreateUIToFP(v, type) : ir_.CreateSIToFP(v, type);
    return round_register(v, to);
  }
  if (is_bool(to)) return ir_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType()));
  return from_unsigned ? ir_.CreateZExtOrTrunc(v, type) : ir_.CreateSExtOrTrunc(v, type);
}

}  // namespace prunerc::codegen
