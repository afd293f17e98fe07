#include "codegen/cpu/legalize.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/Module.h>

#include <vector>

namespace prunerc::codegen {
namespace {

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

// a * b + c of f32 values by way of f64.
llvm::Value* in_double(llvm::IntrinsicInst& fma) {
  llvm::IRBuilder<> ir(&fma);
  llvm::Type* wide = ir.getDoubleTy();
  if (const auto* v = llvm::dyn_cast<llvm::FixedVectorType>(fma.getType())) {
    wide = llvm::FixedVectorType::get(wide, v->getNumElements());
  }
  llvm::Value* a = ir.CreateFPExt(fma.getArgOperand(0), wide);
  llvm::Value* b = ir.CreateFPExt(fma.getArgOperand(1), wide);
  llvm::Value* c = ir.CreateFPExt(fma.getArgOperand(2), wide);
  return ir.CreateFPTrunc(ir.CreateFAdd(ir.CreateFMul(a, b), c), fma.getType());
}

}  // namespace

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
