// Indices, addresses and loads.
#include "codegen/cpu/emitter.h"
#include "codegen/lower/analysis/statements.h"
#include "ir/arith/simplify.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace prunerc::codegen {

using namespace ir;
using llvm::Value;

namespace {

/// Loads this far apart are made of whole vectors and shuffles; beyond it a gather touches less
/// memory.
constexpr int64_t kMaxShuffleStride = 4;

/// Lanes that lie apart in as many turns are made of vectors and shuffles; of more a gather is as good.
constexpr int64_t kMaxTurns = 4;

int64_t gcd_of(int64_t a, int64_t b) { return std::gcd(a, b); }

}  // namespace

std::optional<Affine> Emitter::affine(Expr e) {
  // Where a mask hides them loads do not read, and divisors are 1: nothing to compute another
  // branch's address with.
  const std::pair key(e.node(), has_load(e) || may_trap(e) ? mask_ : nullptr);
  if (const auto it = affine_memo_.find(key); it != affine_memo_.end()) return it->second;
  std::optional<Affine> r = affine_uncached(e);
  affine_memo_.emplace(key, r);
  return r;
}

// Nullopt: e differs between lanes in a way that is not affine.
std::optional<Affine> Emitter::affine_uncached(Expr e) {
  if (const IntImm* imm = e.as<IntImm>()) return Affine{i64(imm->value), 0, std::abs(imm->value)};
  if (const Var* var = e.as<Var>()) {
    const VarInfo& info = vars_.at(var->id);
    return Affine{info.value, lanes_ > 0 && var->id == lane_var_ ? info.step : 0, info.multiple};
  }
  const BinaryNode* node = as_binary(e);
  std::optional<Affine> a, b;
  if (node != nullptr && e.dtype() == DType::kI64) {
    a = affine(node->lhs);
    b = affine(node->rhs);
  }
  if (a && b) {
    // Of indices; what data are added up to may be anything where a condition hides it.
    const bool nsw = !has_data(e);
    switch (e.kind()) {
      case ExprKind::kAdd:
        return Affine{ir_.CreateAdd(a->base, b->base, "", false, nsw), a->stride + b->stride,
                      gcd_of(a->multiple, b->multiple)};
      case ExprKind::kSub:
        return Affine{ir_.CreateSub(a->base, b->base, "", false, nsw), a->stride - b->stride,
                      gcd_of(a->multiple, b->multiple)};
      case ExprKind::kMul: {
        if (a->stride != 0 && b->stride != 0) return std::nullopt;
        if (a->stride != 0) std::swap(a, b);
        const auto* factor = llvm::dyn_cast<llvm::ConstantInt>(a->base);
        if (b->stride != 0 && factor == nullptr) return std::nullopt;
        const int64_t stride = b->stride == 0 ? 0 : b->stride * factor->getSExtValue();
        int64_t multiple = 1;
        if (__builtin_mul_overflow(a->multiple, b->multiple, &multiple)) multiple = 1;
        // What wraps stays a multiple of powers of two alone.
        if (!nsw) multiple &= -multiple;
        return Affine{ir_.CreateMul(a->base, b->base, "", false, nsw), stride, multiple};
      }
      case ExprKind::kFloorDiv:
      case ExprKind::kFloorMod: {
        if (a->stride == 0 && b->stride == 0) break;  // uniform: evaluated below
        auto* c = llvm::dyn_cast<llvm::ConstantInt>(b->base);
        if (b->stride != 0 || c == nullptr || c->getSExtValue() <= 0) return std::nullopt;
        const int64_t divisor = c->getSExtValue();
        // base is a multiple of g, g divides the divisor, and the lanes stay below g: they never
        // carry.
        const int64_t g = gcd_of(a->multiple, divisor);
        const bool no_carry = a->stride > 0 && a->stride * (lanes_ - 1) < g;
        const bool whole_steps = a->stride % divisor == 0;
        if (!no_carry && !whole_steps) return std::nullopt;
        const bool nonneg = is_nonnegative(node->lhs);
        Value* quotient = nullptr;
        if (nonneg) {
          quotient = ir_.CreateUDiv(a->base, c);
        } else {  // floor of a signed quotient
          Value* rem = ir_.CreateSRem(a->base, c);
          Value* adjust = ir_.CreateAShr(rem, i64(63));
          quotient = ir_.CreateAdd(ir_.CreateSDiv(a->base, c), adjust);
        }
        if (e.kind() == ExprKind::kFloorDiv) {
          return Affine{quotient, whole_steps ? a->stride / divisor : 0, 1};
        }
        Value* rest = ir_.CreateSub(a->base, ir_.CreateMul(quotient, c));
        return Affine{rest, whole_steps ? 0 : a->stride, g};
      }
      default: break;
    }
  }
  if (e.dtype() != DType::kI64) return std::nullopt;
  Value* v = eval(e);
  if (v->getType()->isVectorTy()) return std::nullopt;
  return Affine{v, 0, 1};
}

// Row-major offset in elements.
std::optional<Affine> Emitter::flat_affine(BufferId id, std::span<const Expr> indices) {
  const Buffer& buffer = program_.buffer(id);
  Affine sum{i64(0), 0, 0};
  bool nsw = true;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    const std::optional<Affine> index = affine(indices[d]);
    if (!index) {
      const Expr joined = joined_index(buffer, indices);
      return joined.defined() ? affine(joined) : std::nullopt;
    }
    const int64_t extent = buffer.shape[d].as<IntImm>()->value;
    nsw = nsw && !has_data(indices[d]);
    sum.base = ir_.CreateAdd(ir_.CreateMul(sum.base, i64(extent), "", false, nsw), index->base, "",
                             false, nsw);
    sum.stride = sum.stride * extent + index->stride;
  }
  return sum;
}

// The same as one number, in which the digits of another may meet again: X[v // 28, v % 28]. Undefined
// where data choose.
Expr Emitter::joined_index(const Buffer& buffer, std::span<const Expr> indices) {
  const auto known = joined_indices_.find(indices.data());
  if (known != joined_indices_.end()) return known->second;
  Expr sum;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    if (has_load(indices[d])) return {};
    sum = sum.defined() ? joined_.add(joined_.mul(sum, buffer.shape[d]), indices[d]) : indices[d];
  }
  if (!sum.defined()) return {};
  return joined_indices_[indices.data()] = simplify(joined_, sum, {});
}

Value* Emitter::flat_vector(BufferId id, std::span<const Expr> indices) {
  const Buffer& buffer = program_.buffer(id);
  Value* sum = splat(i64(0));
  for (std::size_t d = 0; d < indices.size(); ++d) {
    const int64_t extent = buffer.shape[d].as<IntImm>()->value;
    sum = ir_.CreateAdd(ir_.CreateMul(sum, splat(i64(extent))), splat(eval(indices[d])));
  }
  return sum;
}

Value* Emitter::element(BufferId id, Value* offset, bool inbounds) {
  llvm::Type* type = memory_type(program_.buffer(id).dtype);
  Value* base = buffers_.at(id);
  return inbounds ? ir_.CreateInBoundsGEP(type, base, offset) : ir_.CreateGEP(type, base, offset);
}

// A stack buffer under a statement's mask: some lane is valid, so all lanes are within the slack
// around the buffer and may be read, and written with what they held. Unlike masked accesses, LLVM
// turns those into registers. Not where a task writes a buffer of its caller: what lies beside its
// own elements may be another task's, and writing it back would undo what that one writes.
bool Emitter::on_private_stack(BufferId id) const {
  const auto it = plan_.slots.find(id);
  // Lanes may be narrower than what their indices and conditions load.
  if (lanes_ * byte_size(program_.buffer(id).dtype) > stack_slack_bytes()) return false;
  return it != plan_.slots.end() && it->second.place == Place::kStack && mask_ == branch_mask_ &&
         !captured_.contains(id);
}

// A load that an expression hides behind a condition, but that a store beside it or around does in any
// case: it needs no mask of its own. LLVM makes registers only of memory that no mask stands before.
bool Emitter::runs_anyway(const Load& node) const {
  // What data point to may have changed in between.
  if (std::any_of(node.indices.begin(), node.indices.end(), has_load)) return false;
  const Expr load(&node);
  const auto loads = [&](Stmt s) {
    const Store* store = s.as<Store>();
    if (store == nullptr) return false;
    return always_loads(store->value, load) ||
           std::any_of(store->indices.begin(), store->indices.end(),
                       [&](Expr index) { return always_loads(index, load); });
  };
  return std::any_of(around_.begin(), around_.end(), [&](Stmt s) {
    const Seq* seq = s.as<Seq>();
    return seq == nullptr ? loads(s) : std::any_of(seq->stmts.begin(), seq->stmts.end(), loads);
  });
}

// Tells LLVM that accesses of buffers at different places never overlap.
Value* Emitter::tag(Value* access, BufferId id) {
  if (auto* inst = llvm::dyn_cast<llvm::Instruction>(access)) {
    const AliasInfo& info = alias_[id];
    if (info.scope != nullptr) inst->setMetadata(llvm::LLVMContext::MD_alias_scope, info.scope);
    if (info.noalias != nullptr) inst->setMetadata(llvm::LLVMContext::MD_noalias, info.noalias);
  }
  return access;
}

// Memory that may always be read, for loads whose value is not used.
Value* Emitter::dummy_element() {
  static constexpr const char* kName = ".zero";
  llvm::Type* type = llvm::ArrayType::get(ir_.getInt8Ty(), 1024);
  llvm::GlobalVariable* zero = module_.getNamedGlobal(kName);
  if (zero == nullptr) {
    zero = new llvm::GlobalVariable(module_, type, true, llvm::GlobalValue::PrivateLinkage,
                                    llvm::Constant::getNullValue(type), kName);
    zero->setAlignment(llvm::Align(64));
  }
  return zero;
}

Value* Emitter::load(const Load& node) {
  const DType dtype = node.dtype;
  std::optional<Affine> offset = flat_affine(node.buffer, node.indices);
  Value* v = nullptr;
  if (!offset) {
    v = load_turns(node);
    if (v == nullptr) v = load_gather(node.buffer, flat_vector(node.buffer, node.indices));
  } else if (offset->stride == 0) {
    v = load_scalar(node.buffer, offset->base);
  } else if (offset->stride == 1) {
    v = load_contiguous(node.buffer, offset->base);
  } else {
    const bool is_near = offset->stride > 0 && offset->stride <= kMaxShuffleStride;
    if (!is_near) v = load_column(node, *offset);
    if (v == nullptr) v = load_strided(node.buffer, offset->base, offset->stride);
  }
  return from_memory(v, dtype);
}

Value* Emitter::load_scalar(BufferId id, Value* offset) {
  llvm::Type* type = memory_type(program_.buffer(id).dtype);
  const llvm::Align align(static_cast<uint64_t>(byte_size(program_.buffer(id).dtype)));
  if (mask_ == branch_mask_)
    return tag(ir_.CreateAlignedLoad(type, element(id, offset, true), align), id);
  Value* pointer = ir_.CreateSelect(any(mask_), element(id, offset, false), dummy_element());
  return ir_.CreateAlignedLoad(type, pointer, align);
}

Value* Emitter::load_contiguous(BufferId id, Value* offset) {
  const DType dtype = program_.buffer(id).dtype;
  auto* type = llvm::FixedVectorType::get(memory_type(dtype), static_cast<unsigned>(lanes_));
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  if (mask_ == nullptr || on_private_stack(id)) {
    return tag(ir_.CreateAlignedLoad(type, element(id, offset, true), align), id);
  }
  const int64_t bytes = lanes_ * byte_size(dtype);
  if (!mask_->getType()->isVectorTy() && bytes <= 1024) {
    Value* pointer = ir_.CreateSelect(mask_, element(id, offset, false), dummy_element());
    return ir_.CreateAlignedLoad(type, pointer, align);
  }
  Value* zero = llvm::Constant::getNullValue(type);
  return tag(ir_.CreateMaskedLoad(type, element(id, offset, false), align, vector_mask(), zero),
             id);
}

// The vector at `offset`, which is `start` elements behind the first lane's. Only multiples of the
// stride are wanted, and of them only those of lanes that run.
Value* Emitter::load_part(BufferId id, Value* offset, int64_t start, int64_t stride) {
  const DType dtype = program_.buffer(id).dtype;
  auto* type = llvm::FixedVectorType::get(memory_type(dtype), static_cast<unsigned>(lanes_));
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  if (mask_ == nullptr) {
    return tag(ir_.CreateAlignedLoad(type, element(id, offset, true), align), id);
  }
  std::vector<int> wanted;
  for (int64_t i = start; i < start + lanes_; ++i) {
    wanted.push_back(static_cast<int>(i % stride == 0 ? i / stride : lanes_));
  }
  Value* lanes = vector_mask();
  Value* mask =
      ir_.CreateShuffleVector(lanes, llvm::Constant::getNullValue(lanes->getType()), wanted);
  return tag(ir_.CreateMaskedLoad(type, element(id, offset, false), align, mask,
                                  llvm::Constant::getNullValue(type)),
             id);
}

Value* Emitter::load_strided(BufferId id, Value* offset, int64_t stride) {
  if (stride < 2 || stride > kMaxShuffleStride) {
    Value* lanes = ir_.CreateMul(lane_index(ir_.getInt64Ty()), splat(i64(stride)));
    return load_gather(id, ir_.CreateAdd(splat(offset), lanes));
  }
  // Whole vectors cover exactly the elements from the first to the last used: the last one ends at
  // the last element. Under a mask each reads what its lanes want, which costs a tenth of a gather.
  const int64_t span = stride * (lanes_ - 1) + 1;
  const int64_t parts = (span + lanes_ - 1) / lanes_;
  Value* result = nullptr;
  for (int64_t part = 0; part < parts; ++part) {
    const bool is_last = part + 1 == parts;
    const int64_t start = is_last ? span - lanes_ : part * lanes_;
    Value* v = load_part(id, ir_.CreateAdd(offset, i64(start), "", false, true), start, stride);
    std::vector<int> shuffle(static_cast<std::size_t>(lanes_));
    for (int64_t lane = 0; lane < lanes_; ++lane) {
      const int64_t at_lane = lane * stride;
      const bool here = at_lane / lanes_ == part;
      const int64_t pick = here ? lanes_ + at_lane - start : lane;
      shuffle[static_cast<std::size_t>(lane)] = static_cast<int>(pick);
    }
    if (result == nullptr) {
      for (int& s : shuffle) s = s >= lanes_ ? s - static_cast<int>(lanes_) : -1;
      result = ir_.CreateShuffleVector(v, shuffle);
    } else {
      result = ir_.CreateShuffleVector(result, v, shuffle);
    }
  }
  return result;
}

// The address of every `turns`-th lane, beginning with lane `turn`.
std::optional<Affine> Emitter::affine_of_turn(const Load& node, int64_t turn, int64_t turns) {
  VarInfo& info = vars_.at(lane_var_);
  const VarInfo saved_info = info;
  auto saved_memo = std::exchange(memo_, {});
  auto saved_affine_memo = std::exchange(affine_memo_, {});
  const int64_t saved_lanes = lanes_;
  info.value = ir_.CreateAdd(info.value, i64(turn), "", true, true);
  info.multiple = gcd_of(info.multiple, turn);
  info.step = turns;
  lanes_ /= turns;
  const std::optional<Affine> offset = flat_affine(node.buffer, node.indices);
  lanes_ = saved_lanes;
  affine_memo_ = std::move(saved_affine_memo);
  memo_ = std::move(saved_memo);
  info = saved_info;
  return offset;
}

// Lanes that take turns: of X[v % 2, v // 2] every second one lies beside the one before, as where the phases of
// a transposed convolution become its pixels. Each turn is one vector, and shuffles deal their elements out.
// Null if the lanes are of no such form.
Value* Emitter::load_turns(const Load& node) {
  if (mask_ != nullptr || std::any_of(node.indices.begin(), node.indices.end(), has_load)) {
    return nullptr;
  }
  std::vector<Affine> offsets;
  int64_t turns = 2;
  for (; turns <= kMaxTurns && lanes_ % turns == 0 && lanes_ / turns > 1; turns *= 2) {
    offsets.clear();
    for (int64_t turn = 0; turn < turns; ++turn) {
      const std::optional<Affine> offset = affine_of_turn(node, turn, turns);
      if (!offset || offset->stride < 0 || offset->stride > 1) break;
      offsets.push_back(*offset);
    }
    if (static_cast<int64_t>(offsets.size()) == turns) break;
  }
  if (static_cast<int64_t>(offsets.size()) != turns) return nullptr;
  const int64_t saved_lanes = std::exchange(lanes_, lanes_ / turns);
  std::vector<Value*> parts;
  for (const Affine& offset : offsets) {
    parts.push_back(offset.stride == 1 ? load_contiguous(node.buffer, offset.base)
                                       : splat(load_scalar(node.buffer, offset.base)));
  }
  lanes_ = saved_lanes;
  for (; parts.size() > 1; parts.resize(parts.size() / 2)) {
    const std::size_t half = parts.size() / 2;
    const auto width = static_cast<int>(saved_lanes / static_cast<int64_t>(parts.size()));
    std::vector<int> alternate;
    for (int i = 0; i < width; ++i) alternate.insert(alternate.end(), {i, width + i});
    for (std::size_t i = 0; i < half; ++i) {
      parts[i] = ir_.CreateShuffleVector(parts[i], parts[i + half], alternate);
    }
  }
  return parts[0];
}

Value* Emitter::load_gather(BufferId id, Value* offsets) {
  const DType dtype = program_.buffer(id).dtype;
  auto* type = llvm::FixedVectorType::get(memory_type(dtype), static_cast<unsigned>(lanes_));
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  Value* pointers = element(id, offsets, mask_ == nullptr);
  return tag(ir_.CreateMaskedGather(type, pointers, align, vector_mask(),
                                    llvm::Constant::getNullValue(type)),
             id);
}

}  // namespace prunerc::codegen
