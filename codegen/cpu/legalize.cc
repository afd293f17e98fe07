#include "codegen/cpu/legalize.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <vector>

namespace prunerc::codegen {
namespace {

constexpr const char* kRoundedOnce = "prunerc.rounded_once";

bool is_half(const llvm::Type* type) {
  const llvm::Type* scalar = type->getScalarType();
  return scalar->isHalfTy() || scalar->isBFloatTy();
}

bool touches_half(const llvm::Instruction& instruction) {
  if (is_half(instruction.getType())) return true;
  for (const llvm::Use& operand : instruction.operands()) {
    if (is_half(operand->getType())) return true;
  }
  return false;
}

llvm::Type* shaped(llvm::Type* scalar, const llvm::Type* like) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

// a * b + c of f32 values by way of f64.
llvm::Value* in_double(llvm::IntrinsicInst& fma) {
  llvm::IRBuilder<> ir(&fma);
  llvm::Type* wide = shaped(ir.getDoubleTy(), fma.getType());
  llvm::Value* a = ir.CreateFPExt(fma.getArgOperand(0), wide);
  llvm::Value* b = ir.CreateFPExt(fma.getArgOperand(1), wide);
  llvm::Value* c = ir.CreateFPExt(fma.getArgOperand(2), wide);
  llvm::Value* product = ir.CreateFMul(a, b);
  llvm::Value* sum =
      fma.hasMetadata(kRoundedOnce) ? sum_to_odd(ir, product, c) : ir.CreateFAdd(product, c);
  return ir.CreateFPTrunc(sum, fma.getType());
}

}  // namespace

llvm::Value* sum_to_odd(llvm::IRBuilderBase& ir, llvm::Value* a, llvm::Value* b) {
  llvm::Type* integer = shaped(ir.getInt64Ty(), a->getType());
  llvm::Value* sum = ir.CreateFAdd(a, b);
  // What it is short of, exactly (Knuth).
  llvm::Value* of_b = ir.CreateFSub(sum, a);
  llvm::Value* rest =
      ir.CreateFAdd(ir.CreateFSub(a, ir.CreateFSub(sum, of_b)), ir.CreateFSub(b, of_b));
  llvm::Value* bits = ir.CreateBitCast(sum, integer);
  llvm::Value* signs = ir.CreateXor(bits, ir.CreateBitCast(rest, integer));
  llvm::Value* zero = llvm::Constant::getNullValue(integer);
  llvm::Value* inexact = ir.CreateFCmpONE(rest, llvm::Constant::getNullValue(rest->getType()));
  llvm::Value* too_large = ir.CreateAnd(inexact, ir.CreateICmpSLT(signs, zero));
  llvm::Value* cut = ir.CreateSub(bits, ir.CreateZExt(too_large, integer));
  return ir.CreateBitCast(ir.CreateOr(cut, ir.CreateZExt(inexact, integer)), a->getType());
}

llvm::Value* rounded_once(llvm::Value* fma) {
  auto* instruction = llvm::cast<llvm::Instruction>(fma);
  instruction->setMetadata(kRoundedOnce, llvm::MDNode::get(fma->getContext(), {}));
  return fma;
}

Result<void> replace_fused(llvm::Module& module, const std::string& cpu) {
  std::vector<llvm::IntrinsicInst*> fused;
  for (llvm::Function& function : module) {
    for (llvm::Instruction& instruction : llvm::instructions(function)) {
      if (touches_half(instruction)) {
        return error(Diag::kUnsupported, "half precision on the CPU '" + cpu + "', without F16C,");
      }
      auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction);
      if (call == nullptr || call->getIntrinsicID() != llvm::Intrinsic::fma) continue;
      if (call->getType()->getScalarType()->isDoubleTy()) {
        return error(Diag::kUnsupported,
                     "a function in f64 on the CPU '" + cpu + "', without fused multiply-adds,");
      }
      fused.push_back(call);
    }
  }
  for (llvm::IntrinsicInst* call : fused) {
    call->replaceAllUsesWith(in_double(*call));
    call->eraseFromParent();
  }
  return {};
}

}  // namespace prunerc::codegen
