// Emission of functions: the entry, and the bodies of parallel loops.
#include "codegen/cpu/emitter.h"
#include "ir/visit.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <set>

namespace prunerc::codegen {

using namespace ir;
using llvm::Value;

llvm::Function* Emitter::make_function(std::string_view name, bool is_entry) {
  llvm::Type* ptr = ir_.getPtrTy();
  llvm::FunctionType* type =
      is_entry ? llvm::FunctionType::get(ir_.getInt32Ty(), {ptr, ptr, ptr}, false)
               : llvm::FunctionType::get(ir_.getVoidTy(), {ir_.getInt64Ty(), ir_.getInt32Ty(), ptr},
                                         false);
  llvm::Function* f = llvm::Function::Create(
      type, is_entry ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage,
      llvm::StringRef(name.data(), name.size()), module_);
  const std::string bits = std::to_string(vector_bytes_ * 8);
  f->addFnAttr("prefer-vector-width", bits);
  f->addFnAttr("min-legal-vector-width", bits);
  f->addFnAttr("no-builtins");
  f->addFnAttr(llvm::Attribute::NoUnwind);
  return f;
}

Result<void> Emitter::emit_entry(std::string_view symbol) {
  function_ = make_function(symbol, true);
  function_->getArg(0)->addAttr(llvm::Attribute::NoAlias);
  function_->getArg(1)->addAttr(llvm::Attribute::NoAlias);
  ir_.SetInsertPoint(llvm::BasicBlock::Create(context_, "", function_));
  for (std::size_t i = 0; i < program_.params().size(); ++i) {
    const ParamPlace place =
        plan_.params.empty() ? ParamPlace{static_cast<int32_t>(i), 0} : plan_.params[i];
    Value* slot = ir_.CreateConstInBoundsGEP1_64(ir_.getPtrTy(), function_->getArg(0),
                                                 static_cast<uint64_t>(place.argument));
    llvm::LoadInst* pointer = ir_.CreateLoad(ir_.getPtrTy(), slot);
    pointer->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    Value* base = pointer;
    if (place.offset_bytes > 0) {
      base = ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), pointer,
                                            static_cast<uint64_t>(place.offset_bytes));
    }
    buffers_[program_.params()[i]] = base;
  }
  shared_workspace_ = function_->getArg(1);
  launch_ = function_->getArg(2);
  // Outside of parallel loops the first worker's part is used.
  worker_workspace_ = ir_.CreateConstInBoundsGEP1_64(ir_.getInt8Ty(), shared_workspace_,
                                                     static_cast<uint64_t>(plan_.workspace_bytes));
  begin_tiles(program_.root());
  emit(program_.root());
  end_tiles();
  ir_.CreateRet(ir_.getInt32(0));
  return status_;
}

std::vector<BufferId> Emitter::buffers_used(Stmt s) const {
  std::set<BufferId> used;
  auto in_expr = [&](Expr e) {
    walk(e, [&](Expr x) {
      if (const Load* load = x.as<Load>()) used.insert(load->buffer);
      return true;
    });
  };
  walk(
      s,
      [&](Stmt x) {
        if (const Store* store = x.as<Store>()) used.insert(store->buffer);
        return true;
      },
      in_expr);
  return {used.begin(), used.end()};
}

std::vector<VarId> Emitter::vars_used(Stmt s) const {
  std::set<VarId> used;
  walk(
      s, [](Stmt) { return true; },
      [&](Expr e) {
        walk(e, [&](Expr x) {
          if (const Var* var = x.as<Var>()) used.insert(var->id);
          return true;
        });
      });
  return {used.begin(), used.end()};
}

// The body becomes a function of (task, worker, closure); the closure holds the outer pointers and
// loop variables.
void Emitter::emit_parallel(const Loop& loop, Value* extent) {
  std::vector<BufferId> buffers;
  for (BufferId id : buffers_used(loop.body)) {
    if (buffers_.count(id) != 0) buffers.push_back(id);
  }
  std::vector<VarId> vars;
  for (VarId id : vars_used(loop.body)) {
    if (vars_.count(id) != 0) vars.push_back(id);
  }
  llvm::Type* word = ir_.getInt64Ty();
  llvm::Type* ptr = ir_.getPtrTy();
  Value* closure = stack_slot(word, static_cast<int64_t>(2 + buffers.size() + vars.size()));
  uint64_t slot = 0;
  auto capture = [&](Value* v) {
    ir_.CreateStore(v, ir_.CreateConstInBoundsGEP1_64(word, closure, slot++));
  };
  capture(shared_workspace_);
  for (BufferId id : buffers) capture(buffers_[id]);
  for (VarId id : vars) capture(vars_[id].value);

  llvm::Function* const caller = function_;
  const auto resume = ir_.saveIP();
  const auto saved_vars = vars_;
  const auto saved_buffers = buffers_;
  Value* const saved_shared = shared_workspace_;
  Value* const saved_worker = worker_workspace_;
  const Tiles saved_tiles = tiles_;
  PRUNERC_CHECK(mask_ == nullptr, "parallel loops are not inside vectors");
  function_ = make_function("task." + std::to_string(num_tasks_functions_++), false);
  in_parallel_ = true;
  ir_.SetInsertPoint(llvm::BasicBlock::Create(context_, "", function_));
  Value* inner = function_->getArg(2);
  slot = 0;
  auto restore = [&](llvm::Type* type) {
    llvm::LoadInst* v = ir_.CreateLoad(type, ir_.CreateConstInBoundsGEP1_64(word, inner, slot++));
    v->setMetadata(llvm::LLVMContext::MD_invariant_load, llvm::MDNode::get(context_, {}));
    return v;
  };
  shared_workspace_ = restore(ptr);
  Value* worker = ir_.CreateSExt(function_->getArg(1), word);
  worker = ir_.CreateMul(worker, i64(plan_.workspace_bytes_per_worker));
  worker_workspace_ = ir_.CreateInBoundsGEP(ir_.getInt8Ty(), shared_workspace_,
                                            ir_.CreateAdd(worker, i64(plan_.workspace_bytes)));
  for (BufferId id : buffers) buffers_[id] = restore(ptr);
  captured_ = {buffers.begin(), buffers.end()};
  for (VarId id : vars) vars_[id].value = restore(word);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(extent);
  bind_var(loop.var->id, function_->getArg(0), 1, 0,
           known != nullptr ? known->getSExtValue() - 1 : INT64_MAX);
  begin_tiles(loop.body);
  emit(loop.body);
  end_tiles();
  ir_.CreateRetVoid();

  llvm::Function* task = std::exchange(function_, caller);
  in_parallel_ = false;
  captured_.clear();
  ir_.restoreIP(resume);
  vars_ = saved_vars;
  buffers_ = saved_buffers;
  shared_workspace_ = saved_shared;
  worker_workspace_ = saved_worker;
  tiles_ = saved_tiles;
  memo_.clear();
  affine_memo_.clear();
  Value* run = ir_.CreateLoad(ptr, launch_);  // the first field
  llvm::FunctionType* type =
      llvm::FunctionType::get(ir_.getInt32Ty(), {ptr, word, ptr, ptr}, false);
  // This thread runs tasks, too.
  release_tiles();
  Value* failed = ir_.CreateCall(type, run, {launch_, extent, task, closure});
  auto* give_up = llvm::BasicBlock::Create(context_, "", function_);
  auto* go_on = llvm::BasicBlock::Create(context_, "", function_);
  ir_.CreateCondBr(ir_.CreateICmpNE(failed, ir_.getInt32(0)), give_up, go_on);
  ir_.SetInsertPoint(give_up);
  ir_.CreateRet(failed);
  ir_.SetInsertPoint(go_on);
  configure_tiles();
}

}  // namespace prunerc::codegen
