// Emission of statements and loops.
#include "codegen/cpu/emitter.h"
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/analysis/vectorization.h"
#include "ir/tensor/intrinsic.h"
#include "ir/visit.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/MDBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>

namespace prunerc::codegen {

using namespace ir;
using llvm::Value;

namespace {

// Whether both lie in the workspace, one after the other at the same place.
bool share_bytes(const StoragePlan& plan, BufferId a, BufferId b) {
  const auto x = plan.slots.find(a), y = plan.slots.find(b);
  if (x == plan.slots.end() || y == plan.slots.end()) return false;
  const Slot &s = x->second, &t = y->second;
  return s.place == t.place && s.place != Place::kStack && s.offset < t.offset + t.size_bytes &&
         t.offset < s.offset + s.size_bytes;
}

}  // namespace

Emitter::Emitter(const Program& program, const StoragePlan& plan, const VectorUnit& unit,
                 llvm::Module& module, llvm::IRBuilderBase& builder)
    : program_(program),
      joined_(program),
      plan_(plan),
      vector_bytes_(std::max<int64_t>(unit.bytes, 16)),
      has_avx512_(unit.has_avx512),
      module_(module),
      context_(module.getContext()),
      ir_(builder),
      has_tiles_(has_tile_products(program.root(), ParallelLoops::kItself)) {
  llvm::MDBuilder md(context_);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain();
  std::vector<llvm::MDNode*> scopes;
  for (std::size_t i = 0; i < program.buffers().size(); ++i) {
    scopes.push_back(md.createAnonymousAliasScope(domain));
  }
  for (std::size_t i = 0; i < scopes.size(); ++i) {
    const BufferId id = program.buffers()[i].id;
    std::vector<llvm::Metadata*> others;
    for (std::size_t j = 0; j < scopes.size(); ++j) {
      if (j != i && !share_bytes(plan, id, program.buffers()[j].id)) others.push_back(scopes[j]);
    }
    alias_[id] = {llvm::MDNode::get(context_, {scopes[i]}), llvm::MDNode::get(context_, others)};
  }
}

llvm::Type* Emitter::register_type(DType dtype) const {
  switch (dtype) {
    case DType::kF64: return ir_.getDoubleTy();
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16: return ir_.getFloatTy();
    case DType::kI64: return ir_.getInt64Ty();
    case DType::kI32: return ir_.getInt32Ty();
    case DType::kI8:
    case DType::kU8: return ir_.getInt8Ty();
    case DType::kBool: return ir_.getInt1Ty();
  }
  PRUNERC_UNREACHABLE("dtype");
}

llvm::Type* Emitter::memory_type(DType dtype) const {
  switch (dtype) {
    case DType::kF16:
    case DType::kBF16: return ir_.getInt16Ty();
    case DType::kBool: return ir_.getInt8Ty();
    default: return register_type(dtype);
  }
}

llvm::Type* Emitter::like(llvm::Type* scalar, Value* shape) const {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(shape->getType());
  return vector == nullptr ? scalar : llvm::FixedVectorType::get(scalar, vector->getNumElements());
}

Value* Emitter::i64(int64_t v) const { return ir_.getInt64(static_cast<uint64_t>(v)); }

Value* Emitter::splat(Value* v) {
  if (v->getType()->isVectorTy()) return v;
  return ir_.CreateVectorSplat(static_cast<unsigned>(lanes_), v);
}

void Emitter::align_shapes(Value*& a, Value*& b) {
  if (a->getType()->isVectorTy() || b->getType()->isVectorTy()) {
    a = splat(a);
    b = splat(b);
  }
}

// <0, 1, 2, ...>
Value* Emitter::lane_index(llvm::Type* element) {
  std::vector<llvm::Constant*> lanes;
  for (int64_t i = 0; i < lanes_; ++i) {
    lanes.push_back(llvm::ConstantInt::get(element, static_cast<uint64_t>(i)));
  }
  return llvm::ConstantVector::get(lanes);
}

Value* Emitter::vector_mask() { return splat(mask_ == nullptr ? ir_.getTrue() : mask_); }

Value* Emitter::any(Value* mask) {
  return mask->getType()->isVectorTy() ? ir_.CreateOrReduce(mask) : mask;
}

Value* Emitter::and_masks(Value* a, Value* b) {
  if (a == nullptr) return b;
  align_shapes(a, b);
  return ir_.CreateAnd(a, b);
}

void Emitter::bind_var(VarId id, Value* value, int64_t multiple, int64_t lo, int64_t hi) {
  vars_[id] = {value, multiple, lo};
  ranges_.bind(id, Interval{lo, hi});
  memo_.clear();
  affine_memo_.clear();
}

// Memory of the current function; made in its first block, so that it is one fixed slot even inside
// loops.
Value* Emitter::stack_slot(llvm::Type* type, int64_t count) {
  llvm::BasicBlock& entry = function_->getEntryBlock();
  llvm::IRBuilder<> at_entry(&entry, entry.begin());
  llvm::AllocaInst* slot =
      at_entry.CreateAlloca(llvm::ArrayType::get(type, static_cast<uint64_t>(count)));
  slot->setAlignment(llvm::Align(kStorageAlignment));
  return slot;
}

void Emitter::emit(Stmt s) {
  if (!s.defined() || !status_.ok()) return;
  memo_.clear();
  affine_memo_.clear();
  around_.push_back(s);
  visit(s, Overload{
               [&](const Seq& n) { emit_seq(n); },
               [&](const Loop& n) { emit_loop(n); },
               [&](const Block& n) {
                 status_ =
                     error(Diag::kInternal, "block '" + std::string(n.name) + "' was not lowered");
               },
               [&](const Store& n) { emit_store(n); },
               [&](const If& n) { emit_if(n); },
               [&](const Alloc& n) { emit_alloc(n); },
           });
  around_.pop_back();
}

void Emitter::emit_seq(const Seq& seq) {
  for (std::size_t i = 0; i < seq.stmts.size(); ++i) {
    const Loop* next = i + 1 < seq.stmts.size() ? seq.stmts[i + 1].as<Loop>() : nullptr;
    // Sums of tiles begin in their registers.
    if (next != nullptr && status_.ok() && emit_tile_region(*next, seq.stmts[i])) {
      ++i;
    } else {
      emit(seq.stmts[i]);
    }
  }
}

void Emitter::emit_if(const If& branch) {
  Value* condition = eval(branch.condition);
  if (const auto* known = llvm::dyn_cast<llvm::ConstantInt>(condition)) {
    return emit(known->isOne() ? branch.then_body : branch.else_body);
  }
  if (const auto* known = llvm::dyn_cast<llvm::Constant>(condition);
      known != nullptr && lanes_ > 0) {
    if (known->isAllOnesValue()) return emit(branch.then_body);
    if (known->isNullValue()) return emit(branch.else_body);
  }
  Value* const saved = mask_;
  // A branch even where lanes disagree: inside it at least one lane runs, so what is uniform may be
  // touched.
  auto side = [&](Stmt body, Value* taken) {
    if (!body.defined()) return;
    auto* then_block = llvm::BasicBlock::Create(context_, "", function_);
    auto* after = llvm::BasicBlock::Create(context_, "", function_);
    const bool is_vector = taken->getType()->isVectorTy();
    Value* mask = is_vector ? and_masks(saved, taken) : saved;
    ir_.CreateCondBr(is_vector ? any(mask) : taken, then_block, after);
    ir_.SetInsertPoint(then_block);
    mask_ = branch_mask_ = mask;
    emit(body);
    mask_ = branch_mask_ = saved;
    ir_.CreateBr(after);
    ir_.SetInsertPoint(after);
  };
  side(branch.then_body, condition);
  if (branch.else_body.defined()) side(branch.else_body, ir_.CreateNot(condition));
}

void Emitter::emit_alloc(const Alloc& alloc) {
  const Buffer& buffer = program_.buffer(alloc.buffer);
  const Slot& slot = plan_.slots.at(alloc.buffer);
  const int64_t elems = std::max<int64_t>(1, slot.size_bytes / byte_size(buffer.dtype));
  Value* base = nullptr;
  switch (slot.place) {
    case Place::kStack: {
      const int64_t slack = stack_slack_bytes() / byte_size(buffer.dtype);
      llvm::Type* type = memory_type(buffer.dtype);
      // The copies of an unrolled loop share what cannot become registers: the plan counts it once.
      // So they do with tiles, once those could fill a small stack.
      Value* own = nullptr;
      int64_t& tile_bytes = tile_bytes_[function_];
      const int64_t bytes = slot.size_bytes + 2 * stack_slack_bytes();
      const bool is_tile =
          slot.size_bytes <= kMaxRegisterTileBytes && tile_bytes + bytes <= kMaxTileStackBytes;
      if (is_tile) tile_bytes += bytes;
      Value*& memory = is_tile ? own : stack_buffers_[{function_, alloc.buffer}];
      if (memory == nullptr) memory = stack_slot(type, elems + 2 * slack);
      base = ir_.CreateConstInBoundsGEP1_64(type, memory, static_cast<uint64_t>(slack));
      break;
    }
    case Place::kShared:
    case Place::kWorker:
      base = ir_.CreateConstInBoundsGEP1_64(
          ir_.getInt8Ty(), slot.place == Place::kShared ? shared_workspace_ : worker_workspace_,
          static_cast<uint64_t>(slot.offset));
      break;
  }
  buffers_[alloc.buffer] = base;
  emit(alloc.body);
}

void Emitter::emit_loop(const Loop& loop) {
  if (const std::optional<std::string_view> name = tensor_of(loop)) return emit_tensor(loop, *name);
  if (emit_tile_region(loop)) return;
  const VarRanges::Mark mark = ranges_.mark();
  emit_loop_kind(loop);
  ranges_.rewind(mark);
}

void Emitter::emit_loop_kind(const Loop& loop) {
  Value* extent = eval(loop.extent);
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(extent);
  if (known != nullptr && known->getSExtValue() <= 0) return;
  if (known != nullptr && known->isOne()) {
    bind_var(loop.var->id, i64(0), 0, 0, 0);
    return emit(loop.body);
  }
  switch (loop.loop_kind) {
    case LoopKind::kVectorized:
      if (known != nullptr && lanes_ == 0 && can_vectorize(program_, loop)) {
        return emit_vectorized(loop, known->getSExtValue());
      }
      break;
    case LoopKind::kUnrolled:
      if (known != nullptr && known->getSExtValue() <= kMaxUnrolledCopies / unrolled_copies_) {
        return emit_unrolled(loop, known->getSExtValue());
      }
      break;
    case LoopKind::kParallel:
      if (!in_parallel_ && lanes_ == 0) return emit_parallel(loop, extent);
      break;
    // Thread axes of GPU programs run one after the other here.
    case LoopKind::kSerial:
    case LoopKind::kBlockX:
    case LoopKind::kBlockY:
    case LoopKind::kBlockZ:
    case LoopKind::kThreadX:
    case LoopKind::kThreadY:
    case LoopKind::kThreadZ:
    case LoopKind::kVThreadX:
    case LoopKind::kVThreadY:
    case LoopKind::kVThreadZ: break;
  }
  emit_serial(loop, extent, [&] { emit(loop.body); });
}

llvm::MDNode* Emitter::loop_metadata(int64_t unroll) {
  auto flag = [&](const char* name, llvm::Constant* value) {
    std::vector<llvm::Metadata*> items = {llvm::MDString::get(context_, name)};
    if (value != nullptr) items.push_back(llvm::ConstantAsMetadata::get(value));
    return llvm::MDNode::get(context_, items);
  };
  std::vector<llvm::Metadata*> items = {nullptr, flag("llvm.loop.mustprogress", nullptr),
                                        flag("llvm.loop.vectorize.enable", ir_.getFalse())};
  items.push_back(unroll > 1
                      ? flag("llvm.loop.unroll.count", ir_.getInt32(static_cast<uint32_t>(unroll)))
                      : flag("llvm.loop.unroll.disable", nullptr));
  llvm::MDNode* id = llvm::MDNode::getDistinct(context_, items);
  id->replaceOperandWith(0, id);
  return id;
}

// for i in 0 .. extent: the test is at the end, as LICM wants it.
void Emitter::counted_loop(Value* extent, bool known_positive, int64_t unroll,
                           const std::function<void(Value*)>& body) {
  auto* header = llvm::BasicBlock::Create(context_, "", function_);
  auto* exit = llvm::BasicBlock::Create(context_, "", function_);
  llvm::BasicBlock* before = ir_.GetInsertBlock();
  if (known_positive) {
    ir_.CreateBr(header);
  } else {
    ir_.CreateCondBr(ir_.CreateICmpSGT(extent, i64(0)), header, exit);
  }
  ir_.SetInsertPoint(header);
  llvm::PHINode* i = ir_.CreatePHI(ir_.getInt64Ty(), 2);
  i->addIncoming(i64(0), before);
  body(i);
  Value* next = ir_.CreateAdd(i, i64(1), "", true, true);
  i->addIncoming(next, ir_.GetInsertBlock());
  llvm::BranchInst* back = ir_.CreateCondBr(ir_.CreateICmpSLT(next, extent), header, exit);
  back->setMetadata(llvm::LLVMContext::MD_loop, loop_metadata(unroll));
  ir_.SetInsertPoint(exit);
  memo_.clear();
  affine_memo_.clear();
}

void Emitter::emit_serial(const Loop& loop, Value* extent, const std::function<void()>& body) {
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(extent);
  const int64_t hi = known != nullptr ? known->getSExtValue() - 1 : INT64_MAX;
  int64_t unroll = 1;
  for (const Attr& attr : loop.attrs) {
    if (attr.key == "unroll") unroll = std::clamp<int64_t>(attr.value, 1, kMaxUnrolledCopies);
  }
  counted_loop(extent, known != nullptr, unroll, [&](Value* i) {
    bind_var(loop.var->id, i, 1, 0, hi);
    body();
  });
}

void Emitter::emit_unrolled(const Loop& loop, int64_t extent) {
  if (emit_columns(loop, extent)) return;
  const int64_t saved = unrolled_copies_;
  unrolled_copies_ *= extent;
  std::optional<TileRows> outer = std::exchange(tile_rows_, tile_rows(loop, extent));
  for (int64_t i = 0; i < extent; ++i) {
    const VarRanges::Mark mark = ranges_.mark();
    bind_var(loop.var->id, i64(i), i, i, i);
    emit(loop.body);
    ranges_.rewind(mark);
  }
  unrolled_copies_ = saved;
  tile_rows_ = std::move(outer);
}

void Emitter::emit_vectorized(const Loop& loop, int64_t extent) {
  // Up to four registers of the widest type at once: independent instructions hide latency, more
  // only spill.
  const int64_t most = std::max<int64_t>(4 * vector_bytes_ / widest_bytes(loop.body), 4);
  const int64_t full = extent / most;
  constexpr int64_t kMaxChunkCopies = 4;
  if (full <= kMaxChunkCopies && unrolled_copies_ * full <= kMaxUnrolledCopies) {
    for (int64_t c = 0; c < full; ++c) emit_vector_chunk(loop, i64(c * most), c * most, most);
  } else {
    counted_loop(i64(full), true, 1, [&](Value* i) {
      emit_vector_chunk(loop, ir_.CreateMul(i, i64(most), "", true, true), most, most);
    });
  }
  // The rest in as few vectors as a register's width allows: 48 = 32 + 16, 24 = 16 + 8, 7 = 8 with
  // a mask.
  const int64_t native = std::max<int64_t>(most / 4, 1);
  int64_t done = full * most;
  while (done < extent) {
    int64_t lanes = most;
    while (lanes > extent - done && lanes > native) lanes /= 2;
    const int64_t active = std::min(lanes, extent - done);
    emit_vector_chunk(loop, i64(done), done, active);
    done += active;
  }
}

// Lanes base .. base + active of the loop, in a vector of the next power of two.
void Emitter::emit_vector_chunk(const Loop& loop, Value* base, int64_t multiple, int64_t active) {
  int64_t lanes = 1;
  while (lanes < active) lanes *= 2;
  const auto* start = llvm::dyn_cast<llvm::ConstantInt>(base);
  const int64_t lo = start != nullptr ? start->getSExtValue() : 0;
  const int64_t hi = start != nullptr ? lo + active - 1 : constant_or(loop.extent, INT64_MAX) - 1;
  bind_var(loop.var->id, base, multiple, lo, hi);
  if (active == 1) return emit(loop.body);
  lanes_ = lanes;
  lane_var_ = loop.var->id;
  if (active < lanes) {
    mask_ = ir_.CreateICmpULT(lane_index(ir_.getInt32Ty()),
                              splat(ir_.getInt32(static_cast<uint32_t>(active))));
    branch_mask_ = mask_;
  }
  emit(loop.body);
  mask_ = branch_mask_ = nullptr;
  lanes_ = 0;
  lane_var_ = {};
}

}  // namespace prunerc::codegen
