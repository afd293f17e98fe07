// Emission of stores, and of reductions across the lanes of a vectorized loop.
#include "codegen/cpu/emitter.h"
#include "codegen/lower/analysis/vectorization.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <cmath>

namespace prunerc::codegen {

using namespace ir;
using llvm::Value;

namespace {

bool is_fma_type(DType t) { return t == DType::kF32 || t == DType::kF64; }

}  // namespace

// acc + a * b as one fused operation. Sums are reassociated by schedules anyway, so a rounding less
// is within the contract; elsewhere products and sums round as written.
Value* Emitter::contracted(const Store& store) {
  const std::optional<Accumulation> acc = accumulation(store);
  if (!acc || acc->kind != ExprKind::kAdd || !is_fma_type(store.value.dtype())) return nullptr;
  const Mul* product = acc->term.as<Mul>();
  if (product == nullptr) return nullptr;
  Value* a = eval(product->lhs);
  Value* b = eval(product->rhs);
  const BinaryNode* sum = as_binary(store.value);
  Value* c = eval(acc->term.is(sum->rhs) ? sum->lhs : sum->rhs);
  if (a->getType()->isVectorTy() || b->getType()->isVectorTy() || c->getType()->isVectorTy()) {
    a = splat(a);
    b = splat(b);
    c = splat(c);
  }
  return ir_.CreateIntrinsic(llvm::Intrinsic::fmuladd, {a->getType()}, {a, b, c});
}

void Emitter::emit_store(const Store& store) {
  if (lanes_ > 0 && emit_vector_reduction(store)) return;
  Value* value = contracted(store);
  if (value == nullptr) value = eval(store.value);
  write(store.buffer, store.indices, value);
}

// element = element op f(lane): the lanes are combined first, then the element is updated once.
bool Emitter::emit_vector_reduction(const Store& store) {
  const std::optional<Accumulation> acc = accumulation(store);
  if (!acc) return false;
  const std::optional<Affine> offset = flat_affine(store.buffer, store.indices);
  if (!offset || offset->stride != 0) return false;
  const DType dtype = store.value.dtype();
  const bool fp = is_float(dtype);
  Value* v = splat(eval(acc->term));
  if (mask_ != nullptr) {
    double identity = acc->kind == ExprKind::kMul ? 1 : 0;
    int64_t int_identity = acc->kind == ExprKind::kMul ? 1 : 0;
    if (acc->kind == ExprKind::kMin || acc->kind == ExprKind::kMax) {
      const bool is_min = acc->kind == ExprKind::kMin;
      identity = is_min ? HUGE_VAL : -HUGE_VAL;
      int_identity = fp ? 0 : (is_min ? max_int(dtype) : min_int(dtype));
    }
    if (acc->kind == ExprKind::kAdd && fp) identity = -0.0;
    v = ir_.CreateSelect(vector_mask(), v, splat(constant(dtype, identity, int_identity)));
  }
  // A tree of halves: the order that vector instructions take, and well-conditioned.
  const int64_t saved_lanes = lanes_;
  for (int64_t half = lanes_ / 2; half >= 1; half /= 2) {
    std::vector<int> low, high;
    for (int64_t i = 0; i < half; ++i) {
      low.push_back(static_cast<int>(i));
      high.push_back(static_cast<int>(i + half));
    }
    v = arithmetic(acc->kind, dtype, ir_.CreateShuffleVector(v, low),
                   ir_.CreateShuffleVector(v, high));
  }
  v = ir_.CreateExtractElement(v, uint64_t{0});
  Value* const saved_mask = std::exchange(mask_, nullptr);
  Value* const saved_branch_mask = std::exchange(branch_mask_, nullptr);
  lanes_ = 0;
  Value* old = from_memory(load_scalar(store.buffer, offset->base), dtype);
  Value* sum = arithmetic(acc->kind, dtype, old, v);
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  tag(ir_.CreateAlignedStore(to_memory(sum, dtype), element(store.buffer, offset->base, true),
                             align),
      store.buffer);
  lanes_ = saved_lanes;
  mask_ = saved_mask;
  branch_mask_ = saved_branch_mask;
  return true;
}

void Emitter::write(BufferId id, std::span<const Expr> indices, Value* value) {
  const DType dtype = program_.buffer(id).dtype;
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  const std::optional<Affine> offset = flat_affine(id, indices);
  // One element for all lanes. Masks here come from branches, so some lane is active. Lanes agree on
  // the value where the loop stores to no other element; else a scatter has the last one win.
  const bool is_vector = value->getType()->isVectorTy();
  if (offset && offset->stride == 0 && !(is_vector && mentions(indices, lane_var_))) {
    if (is_vector) value = ir_.CreateExtractElement(value, uint64_t{0});
    tag(ir_.CreateAlignedStore(to_memory(value, dtype), element(id, offset->base, true), align),
        id);
    return;
  }
  value = to_memory(splat(value), dtype);
  if (offset && offset->stride == 1) {
    if (mask_ != nullptr && on_private_stack(id)) {
      Value* pointer = element(id, offset->base, true);
      Value* old = tag(ir_.CreateAlignedLoad(value->getType(), pointer, align), id);
      tag(ir_.CreateAlignedStore(ir_.CreateSelect(vector_mask(), value, old), pointer, align), id);
      return;
    }
    Value* pointer = element(id, offset->base, mask_ == nullptr);
    tag(mask_ == nullptr ? static_cast<Value*>(ir_.CreateAlignedStore(value, pointer, align))
                         : ir_.CreateMaskedStore(value, pointer, align, vector_mask()),
        id);
    return;
  }
  Value* offsets = nullptr;
  if (offset) {
    Value* lanes = ir_.CreateMul(lane_index(ir_.getInt64Ty()), splat(i64(offset->stride)));
    offsets = ir_.CreateAdd(splat(offset->base), lanes);
  } else {
    offsets = flat_vector(id, indices);
  }
  tag(ir_.CreateMaskedScatter(value, element(id, offsets, mask_ == nullptr), align, vector_mask()),
      id);
}

}  // namespace prunerc::codegen
