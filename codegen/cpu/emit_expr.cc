// Emission of values.
#include "codegen/cpu/emitter.h"
#include "codegen/cpu/legalize.h"
#include "codegen/cpu/vector_math.h"
#include "codegen/lower/analysis/statements.h"
#include "ir/visit.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/Module.h>

namespace prunerc::codegen {

using namespace ir;
using llvm::Value;

Value* Emitter::eval(Expr e) {
  if (mask_ != branch_mask_) {
    const Load* load = e.as<Load>();
    if (load != nullptr && runs_anyway(*load)) {
      Value* const saved = std::exchange(mask_, branch_mask_);
      Value* v = eval(e);
      mask_ = saved;
      return v;
    }
  }
  const auto key = std::make_pair(e.node(), mask_);
  if (const auto it = memo_.find(key); it != memo_.end()) return it->second;
  Value* v = eval_uncached(e);
  memo_.emplace(key, v);
  return v;
}

Value* Emitter::eval_uncached(Expr e) {
  return visit(
      e, Overload{
             [&](const Var& n) -> Value* {
               const VarInfo& info = vars_.at(n.id);
               if (lanes_ == 0 || n.id != lane_var_) return info.value;
               Value* lanes = ir_.CreateMul(lane_index(ir_.getInt64Ty()), splat(i64(info.step)));
               return ir_.CreateAdd(splat(info.value), lanes);
             },
             [&](const TileParam&) -> Value* {
               status_ = error(Diag::kUnsupported, "compiling a program with tile parameters");
               return i64(1);
             },
             [&](const IntImm& n) -> Value* { return constant(n.dtype, 0, n.value); },
             [&](const FloatImm& n) -> Value* { return constant(n.dtype, n.value, 0); },
             [&](const Not& n) -> Value* { return ir_.CreateNot(eval(n.operand)); },
             [&](const Select& n) -> Value* { return eval_select(n); },
             [&](const Cast& n) -> Value* {
               return cast(eval(n.operand), n.operand.dtype(), n.dtype);
             },
             [&](const Load& n) -> Value* { return load(n); },
             [&](const Call& n) -> Value* { return eval_call(n); },
             [&](const FloorDiv& n) -> Value* { return eval_floor(n); },
             [&](const FloorMod& n) -> Value* { return eval_floor(n); },
             [&](const Eq& n) -> Value* { return eval_compare(n); },
             [&](const Ne& n) -> Value* { return eval_compare(n); },
             [&](const Lt& n) -> Value* { return eval_compare(n); },
             [&](const Le& n) -> Value* { return eval_compare(n); },
             [&](const And& n) -> Value* { return eval_logic(n); },
             [&](const Or& n) -> Value* { return eval_logic(n); },
             [&](const auto& n) -> Value* { return eval_binary(n); },  // Add Sub Mul Div Min Max
         });
}

Value* Emitter::eval_binary(const BinaryNode& node) {
  Value* a = eval(node.lhs);
  Value* b = eval(node.rhs);
  align_shapes(a, b);
  return arithmetic(node.kind, node.dtype, a, b);
}

Value* Emitter::arithmetic(ExprKind kind, DType dtype, Value* a, Value* b) {
  const bool fp = is_float(dtype);
  const bool is_unsigned = dtype == DType::kU8;
  Value* r = nullptr;
  switch (kind) {
    case ExprKind::kAdd: r = fp ? ir_.CreateFAdd(a, b) : ir_.CreateAdd(a, b); break;
    case ExprKind::kSub: r = fp ? ir_.CreateFSub(a, b) : ir_.CreateSub(a, b); break;
    case ExprKind::kMul: r = fp ? ir_.CreateFMul(a, b) : ir_.CreateMul(a, b); break;
    case ExprKind::kDiv: r = ir_.CreateFDiv(a, b); break;
    // The order of operands is that of minps and maxps, so that one instruction results.
    case ExprKind::kMin:
      return fp ? ir_.CreateSelect(ir_.CreateFCmpOLT(a, b), a, b)
                : ir_.CreateBinaryIntrinsic(
                      is_unsigned ? llvm::Intrinsic::umin : llvm::Intrinsic::smin, a, b);
    case ExprKind::kMax:
      return fp ? ir_.CreateSelect(ir_.CreateFCmpOGT(a, b), a, b)
                : ir_.CreateBinaryIntrinsic(
                      is_unsigned ? llvm::Intrinsic::umax : llvm::Intrinsic::smax, a, b);
    default: PRUNERC_UNREACHABLE("arithmetic kind");
  }
  return round_register(r, dtype);
}

Value* Emitter::eval_compare(const BinaryNode& node) {
  if (node.lhs.dtype() == DType::kI64 &&
      (node.kind == ExprKind::kLt || node.kind == ExprKind::kLe)) {
    // The copies of unrolled loops decide many conditions that the loop as a whole could not.
    const Interval a = interval_of(node.lhs, ranges_), b = interval_of(node.rhs, ranges_);
    const bool strict = node.kind == ExprKind::kLt;
    if (a.hi != Interval::kNoUpper && b.lo != Interval::kNoLower &&
        (strict ? a.hi < b.lo : a.hi <= b.lo)) {
      return ir_.getTrue();
    }
    if (a.lo != Interval::kNoLower && b.hi != Interval::kNoUpper &&
        (strict ? b.hi <= a.lo : b.hi < a.lo)) {
      return ir_.getFalse();
    }
  }
  if (Value* mask = compare_lanes(node)) return mask;
  Value* a = eval(node.lhs);
  Value* b = eval(node.rhs);
  align_shapes(a, b);
  const DType t = node.lhs.dtype();
  if (is_float(t)) {
    switch (node.kind) {
      case ExprKind::kEq: return ir_.CreateFCmpOEQ(a, b);
      case ExprKind::kNe: return ir_.CreateFCmpUNE(a, b);
      case ExprKind::kLt: return ir_.CreateFCmpOLT(a, b);
      default: return ir_.CreateFCmpOLE(a, b);
    }
  }
  const bool is_unsigned = t == DType::kU8 || t == DType::kBool;
  switch (node.kind) {
    case ExprKind::kEq: return ir_.CreateICmpEQ(a, b);
    case ExprKind::kNe: return ir_.CreateICmpNE(a, b);
    case ExprKind::kLt: return is_unsigned ? ir_.CreateICmpULT(a, b) : ir_.CreateICmpSLT(a, b);
    default: return is_unsigned ? ir_.CreateICmpULE(a, b) : ir_.CreateICmpSLE(a, b);
  }
}

// lhs - rhs = base + stride * lane with stride +-1: compares the lane number, in 32 bits, with one
// clamped scalar. 64-bit lanes would need several vectors for the same mask.
Value* Emitter::compare_lanes(const BinaryNode& node) {
  if (lanes_ == 0 || node.lhs.dtype() != DType::kI64) return nullptr;
  if (node.kind != ExprKind::kLt && node.kind != ExprKind::kLe) return nullptr;
  // Affine forms take index arithmetic not to overflow; data may.
  if (has_data(node.lhs) || has_data(node.rhs)) return nullptr;
  const std::optional<Affine> a = affine(node.lhs);
  const std::optional<Affine> b = affine(node.rhs);
  if (!a || !b) return nullptr;
  const int64_t stride = a->stride - b->stride;
  if (stride != 1 && stride != -1) return nullptr;
  // a - b < 0, or a - b - 1 < 0 for "<=".
  Value* base = ir_.CreateSub(a->base, b->base);
  if (node.kind == ExprKind::kLe) base = ir_.CreateSub(base, i64(1));
  Value* lanes = lane_index(ir_.getInt32Ty());
  auto clamp = [&](Value* v, int64_t lo, int64_t hi) {
    v = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, v, i64(lo));
    v = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, v, i64(hi));
    return splat(ir_.CreateTrunc(v, ir_.getInt32Ty()));
  };
  if (stride == 1) return ir_.CreateICmpSLT(lanes, clamp(ir_.CreateNeg(base), 0, lanes_));
  return ir_.CreateICmpSGT(lanes, clamp(base, -1, lanes_));
}

// `e` with memory accesses limited further, because its value is used only where `extra` holds.
Value* Emitter::eval_with_mask(Expr e, Value* extra) {
  Value* const saved = mask_;
  mask_ = and_masks(mask_, extra);
  Value* v = eval(e);
  mask_ = saved;
  return v;
}

Value* Emitter::eval_logic(const BinaryNode& node) {
  Value* a = eval(node.lhs);
  const bool is_and = node.kind == ExprKind::kAnd;
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(a)) {
    return known->isOne() == is_and ? eval(node.rhs) : a;
  }
  Value* b = eval_with_mask(node.rhs, is_and ? a : ir_.CreateNot(a));
  align_shapes(a, b);
  return is_and ? ir_.CreateAnd(a, b) : ir_.CreateOr(a, b);
}

Value* Emitter::eval_select(const Select& node) {
  Value* condition = eval(node.condition);
  if (auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    return eval(known->isOne() ? node.on_true : node.on_false);
  }
  if (const auto* known = llvm::dyn_cast<llvm::Constant>(condition)) {
    if (known->isAllOnesValue()) return eval(node.on_true);
    if (known->isNullValue()) return eval(node.on_false);
  }
  Value* a = eval_with_mask(node.on_true, condition);
  Value* b = eval_with_mask(node.on_false, ir_.CreateNot(condition));
  align_shapes(a, b);
  if (condition->getType()->isVectorTy()) {
    a = splat(a);
    b = splat(b);
  }
  return ir_.CreateSelect(condition, a, b);
}

// True if the emitter knows e >= 0 from the ranges of loop variables, whatever data wrap to.
bool Emitter::is_nonnegative(Expr e) const { return interval_of(e, ranges_).lo >= 0; }

Value* Emitter::eval_floor(const BinaryNode& node) {
  if (lanes_ > 0 && node.dtype == DType::kI64 && !has_data(Expr(&node))) {
    // Uniform operands are evaluated below; affine() itself comes here for them.
    const std::optional<Affine> numerator = affine(node.lhs);
    const bool moves = numerator && numerator->stride != 0;
    if (const std::optional<Affine> known = moves ? affine(Expr(&node)) : std::nullopt) {
      if (known->stride == 0) return known->base;
      Value* lanes = ir_.CreateMul(lane_index(ir_.getInt64Ty()), splat(i64(known->stride)));
      return ir_.CreateAdd(splat(known->base), lanes);
    }
  }
  Value* a = eval(node.lhs);
  Value* b = eval(node.rhs);
  const bool nonneg = is_nonnegative(node.lhs) && is_nonnegative(node.rhs);
  const bool is_div = node.kind == ExprKind::kFloorDiv;
  // Where the value is not used the divisor may be anything: make it harmless.
  if (mask_ != nullptr && !llvm::isa<llvm::Constant>(b)) {
    // What is uniform stays so: an address made of it is one for all lanes.
    Value* safe = b->getType()->isVectorTy() ? mask_ : any(mask_);
    b = ir_.CreateSelect(safe, b, llvm::ConstantInt::get(b->getType(), 1));
  }
  align_shapes(a, b);
  if (nonneg) return is_div ? ir_.CreateUDiv(a, b) : ir_.CreateURem(a, b);
  if (const auto* c = llvm::dyn_cast<llvm::ConstantInt>(b);
      c != nullptr && c->getValue().isPowerOf2() && c->getValue().isStrictlyPositive()) {
    const uint64_t shift = c->getValue().logBase2();
    if (is_div) return ir_.CreateAShr(a, llvm::ConstantInt::get(a->getType(), shift));
    return ir_.CreateAnd(a, llvm::ConstantInt::get(a->getType(), c->getZExtValue() - 1));
  }
  // Division by -1 wraps for the smallest value instead of trapping.
  Value* zero = llvm::Constant::getNullValue(a->getType());
  Value* minus_one = llvm::Constant::getAllOnesValue(a->getType());
  Value* is_minus_one = ir_.CreateICmpEQ(b, minus_one);
  Value* divisor = ir_.CreateSelect(is_minus_one, llvm::ConstantInt::get(a->getType(), 1), b);
  Value* rem = ir_.CreateSRem(a, divisor);
  Value* wrong_sign = ir_.CreateAnd(ir_.CreateICmpNE(rem, zero),
                                    ir_.CreateICmpSLT(ir_.CreateXor(rem, divisor), zero));
  if (!is_div) {
    return ir_.CreateSelect(wrong_sign, ir_.CreateAdd(rem, divisor), rem);
  }
  Value* quotient = ir_.CreateSDiv(a, divisor);
  quotient = ir_.CreateSelect(wrong_sign, ir_.CreateAdd(quotient, minus_one), quotient);
  return ir_.CreateSelect(is_minus_one, ir_.CreateNeg(a), quotient);
}

Value* Emitter::eval_call(const Call& node) {
  std::vector<Value*> args;
  bool any_vector = false;
  for (Expr arg : node.args) {
    args.push_back(eval(arg));
    any_vector = any_vector || args.back()->getType()->isVectorTy();
  }
  if (any_vector) {
    for (Value*& arg : args) arg = splat(arg);
  }
  if (is_int(node.dtype)) {
    // abs is the only function of integers; the smallest value wraps.
    if (node.dtype == DType::kU8) return args[0];
    Value* r = ir_.CreateBinaryIntrinsic(llvm::Intrinsic::abs, args[0], ir_.getInt1(false));
    return r;
  }
  if (node.intrinsic == Intrinsic::kFma &&
      (node.dtype == DType::kF16 || node.dtype == DType::kBF16)) {
    // In f32 the sum would be rounded twice; in f64 the product is exact.
    for (Value*& arg : args) arg = cast(arg, node.dtype, DType::kF64);
    Value* sum = sum_to_odd(ir_, ir_.CreateFMul(args[0], args[1]), args[2]);
    return cast(sum, DType::kF64, node.dtype);
  }
  return round_register(emit_intrinsic(ir_, node.intrinsic, args, has_avx512_), node.dtype);
}

}  // namespace prunerc::codegen
