// Emission of stores, and of reductions across the lanes of a vectorized loop.
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Module.h>

#include <algorithm>
#include <map>
#include <set>
#include <cmath>

#include "codegen/cpu/emit.h"
#include "codegen/cpu/emitter.h"
#include "ir/visit.h"

namespace prunerc::codegen {

using namespace ir;
using llvm::Value;

namespace {

bool same_indices(std::span<const Expr> a, std::span<const Expr> b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](Expr x, Expr y) {
           return x.is(y) || x.hash() == y.hash();
         });
}

bool is_element(Expr e, const Store& store) {
  const Load* load = e.as<Load>();
  return load != nullptr && load->buffer == store.buffer && same_indices(load->indices, store.indices);
}

bool loads_from(Expr e, BufferId id) {
  bool found = false;
  walk(e, [&](Expr x) {
    const Load* load = x.as<Load>();
    found = found || (load != nullptr && load->buffer == id);
    return !found;
  });
  return found;
}

bool mentions(Expr e, VarId id) {
  bool found = false;
  walk(e, [&](Expr x) {
    const Var* var = x.as<Var>();
    found = found || (var != nullptr && var->id == id);
    return !found;
  });
  return found;
}

bool mentions(std::span<const Expr> items, VarId id) {
  return std::any_of(items.begin(), items.end(), [&](Expr e) { return mentions(e, id); });
}

bool is_fma_type(DType t) { return t == DType::kF32 || t == DType::kF64; }

}  // namespace

std::optional<Accumulation> accumulation(const Store& store) {
  const BinaryNode* node = as_binary(store.value);
  if (node == nullptr) return std::nullopt;
  const ExprKind k = node->kind;
  if (k != ExprKind::kAdd && k != ExprKind::kMul && k != ExprKind::kMin && k != ExprKind::kMax) {
    return std::nullopt;
  }
  if (is_element(node->lhs, store) && !loads_from(node->rhs, store.buffer)) return Accumulation{k, node->rhs};
  if (is_element(node->rhs, store) && !loads_from(node->lhs, store.buffer)) return Accumulation{k, node->lhs};
  return std::nullopt;
}

namespace {

// Whether lanes of the loop `v` may run in lockstep: what one lane stores, no other lane touches, except by an
// accumulation into one element.
struct LaneCheck {
  VarId v;
  bool ok = true;
  int conditions = 0;  // lane-dependent conditions around the statement
  std::map<BufferId, std::vector<std::span<const Expr>>> stores, loads;
  std::set<BufferId> accumulated;

  void expr(Expr e) {
    walk(e, [&](Expr x) {
      if (const Load* load = x.as<Load>()) loads[load->buffer].push_back(load->indices);
      return true;
    });
  }

  void stmt(Stmt s) {
    if (!s.defined()) return;
    visit(s, Overload{
                 [&](const Seq& n) {
                   for (Stmt child : n.stmts) stmt(child);
                 },
                 [&](const Loop& n) {
                   ok = ok && !mentions(n.extent, v) && !reads_memory(n.extent);
                   stmt(n.body);
                 },
                 [&](const Block&) { ok = false; },
                 [&](const Alloc&) { ok = false; },
                 [&](const If& n) {
                   expr(n.condition);
                   const bool varies = mentions(n.condition, v) || reads_memory(n.condition);
                   conditions += varies ? 1 : 0;
                   stmt(n.then_body);
                   stmt(n.else_body);
                   conditions -= varies ? 1 : 0;
                 },
                 [&](const Store& n) { store(n); },
             });
  }

  static bool reads_memory(Expr e) {
    bool found = false;
    walk(e, [&](Expr x) { return found = found || x.kind() == ExprKind::kLoad, !found; });
    return found;
  }

  void store(const Store& n) {
    if (!mentions(n.indices, v)) {
      const std::optional<Accumulation> acc = accumulation(n);
      if (acc) {
        accumulated.insert(n.buffer);
        for (Expr index : n.indices) expr(index);
        return expr(acc->term);
      }
      // One value for one element: lanes agree, unless only some of them would store.
      ok = ok && conditions == 0 && !mentions(n.value, v) && !loads_from(n.value, n.buffer);
    }
    stores[n.buffer].push_back(n.indices);
    for (Expr index : n.indices) expr(index);
    expr(n.value);
  }

  // In some dimension every access has the same index, which moves with the lane.
  bool separated(const std::vector<std::span<const Expr>>& accesses) const {
    const std::size_t rank = accesses.front().size();
    for (std::size_t d = 0; d < rank; ++d) {
      const Expr first = accesses.front()[d];
      const bool all = std::all_of(accesses.begin(), accesses.end(), [&](std::span<const Expr> a) {
        return a.size() == rank && (a[d].is(first) || a[d].hash() == first.hash());
      });
      if (all && is_injective(first)) return true;
    }
    return false;
  }

  // v itself, or a sum of v (times a nonzero constant) and terms without v.
  bool is_injective(Expr e) const {
    if (const Var* var = e.as<Var>()) return var->id == v;
    const BinaryNode* node = as_binary(e);
    if (node == nullptr) return false;
    const bool in_lhs = mentions(node->lhs, v), in_rhs = mentions(node->rhs, v);
    if (in_lhs == in_rhs) return false;
    const Expr moving = in_lhs ? node->lhs : node->rhs;
    const Expr other = in_lhs ? node->rhs : node->lhs;
    if (node->kind == ExprKind::kMul) {
      const IntImm* factor = other.as<IntImm>();
      return factor != nullptr && factor->value != 0 && is_injective(moving);
    }
    return (node->kind == ExprKind::kAdd || node->kind == ExprKind::kSub) && is_injective(moving) &&
           !reads_memory(other);
  }

  bool conflict_free() const {
    for (const auto& [id, indices] : stores) {
      const auto read = loads.find(id);
      if (accumulated.count(id) != 0) {
        // An initial value before accumulation, both of one element that no other statement reads.
        if (read != loads.end()) return false;
        continue;
      }
      std::vector<std::span<const Expr>> all = indices;
      if (read != loads.end()) all.insert(all.end(), read->second.begin(), read->second.end());
      const bool uniform = std::none_of(all.begin(), all.end(), [&](auto a) { return mentions(a, v); });
      if (all.size() == 1 || (uniform && read == loads.end())) continue;
      if (!separated(all)) return false;
    }
    for (BufferId id : accumulated) {
      if (loads.count(id) != 0) return false;
    }
    return true;
  }
};

}  // namespace

bool can_vectorize(const Program&, const Loop& loop) {
  LaneCheck check{loop.var->id, true, 0, {}, {}, {}};
  check.stmt(loop.body);
  return check.ok && check.conflict_free();
}

int64_t widest_bytes(Stmt s) {
  int64_t widest = 1;
  auto expr = [&](Expr e) {
    walk(e, [&](Expr x) {
      if (x.kind() == ExprKind::kLoad || x.kind() == ExprKind::kCast || is_float(x.dtype())) {
        const bool held_as_f32 = x.dtype() == DType::kF16 || x.dtype() == DType::kBF16;
        widest = std::max(widest, held_as_f32 ? 4 : byte_size(x.dtype()));
      }
      return x.kind() != ExprKind::kLoad;
    });
  };
  walk(s, [&](Stmt x) {
    if (const Store* store = x.as<Store>()) expr(store->value);
    return true;
  }, [](Expr) {});
  return widest;
}

// acc + a * b as one fused operation. Sums are reassociated by schedules anyway, so a rounding less is within the
// contract; elsewhere products and sums round as written.
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
    v = arithmetic(acc->kind, dtype, ir_.CreateShuffleVector(v, low), ir_.CreateShuffleVector(v, high));
  }
  v = ir_.CreateExtractElement(v, uint64_t{0});
  Value* const saved_mask = std::exchange(mask_, nullptr);
  lanes_ = 0;
  Value* old = from_memory(load_scalar(store.buffer, offset->base), dtype);
  Value* sum = arithmetic(acc->kind, dtype, old, v);
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  tag(ir_.CreateAlignedStore(to_memory(sum, dtype), element(store.buffer, offset->base, true), align),
      store.buffer);
  lanes_ = saved_lanes;
  mask_ = saved_mask;
  return true;
}

void Emitter::write(BufferId id, std::span<const Expr> indices, Value* value) {
  const DType dtype = program_.buffer(id).dtype;
  const llvm::Align align(static_cast<uint64_t>(byte_size(dtype)));
  const std::optional<Affine> offset = flat_affine(id, indices);
  if (offset && offset->stride == 0) {
    // One element for all lanes. Masks here come from branches, so some lane is active; lanes agree on the value.
    if (value->getType()->isVectorTy()) value = ir_.CreateExtractElement(value, uint64_t{0});
    tag(ir_.CreateAlignedStore(to_memory(value, dtype), element(id, offset->base, true), align), id);
    return;
  }
  value = to_memory(splat(value), dtype);
  if (offset && offset->stride == 1) {
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
  tag(ir_.CreateMaskedScatter(value, element(id, offsets, mask_ == nullptr), align, vector_mask()), id);
}

}  // namespace prunerc::codegen
