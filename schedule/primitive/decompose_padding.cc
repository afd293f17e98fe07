// decompose_padding(@P, @L): a padded copy becomes a fill and a copy of what is inside. Needs: one
// store of a select with a constant second branch; spatial variables, of which the condition bounds
// single ones; loops from @L on serial, straight around the block. After: the condition holds
// inside the box and fails outside; loops that are a variable shrink, others get a guard.
//   for j in 8 @L { block @P [v: S(8) = j] { Y[v] = select(1 <= v && v < 7, X[v - 1], 0f32) } }
// ~>
//   for j in 8 { block "Y_fill" @B1 [v: S(8) = j] { Y[v] = 0f32 } }
//   for j in 6 @L { block @P [v: S(6) = j] { Y[v + 1] = X[v] } }
#include "ir/analysis/region.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/visit.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

// Values of one variable for which the condition holds: [lo, hi).
struct Box {
  int64_t lo = 0;
  int64_t hi = 0;
};

struct PaddingPlan {
  Site site;  // of the loop
  const Block* block = nullptr;
  std::vector<const Loop*> inner;
  /// By the block's variables.
  std::vector<Box> box;
  /// Every loop of `inner` is one whole variable, and no guard relates them.
  bool plain = true;

  /// The loop of `inner` that is the variable, null for one of the loops above.
  const Loop* loop_of(std::size_t iter) const {
    const Var* var = block->iters[iter].binding.as<Var>();
    for (const Loop* loop : inner) {
      if (var != nullptr && loop->var->id == var->id) return loop;
    }
    return nullptr;
  }
};

Error unfit(BlockId id, std::string what) { return error(Diag::kPaddingForm, id, std::move(what)); }

const Select* padding_of(const Block& block) {
  const Store* store = block.body.as<Store>();
  const Select* select = store == nullptr ? nullptr : store->value.as<Select>();
  if (select == nullptr) return nullptr;
  const Expr other = select->on_false;
  const bool is_constant = other.as<IntImm>() != nullptr || other.as<FloatImm>() != nullptr;
  return is_constant ? select : nullptr;
}

// Narrows the box of the one variable that the comparison bounds; false if it is no such bound.
bool narrow(IrBuilder& b, const Block& block, Expr comparison, const VarRanges& ranges,
            std::vector<Box>& box) {
  const bool less = comparison.kind() == ExprKind::kLt;
  if (!less && comparison.kind() != ExprKind::kLe) return false;
  const BinaryNode& node = *as_binary(comparison);
  if (node.lhs.dtype() != DType::kI64) return false;
  // coef*v + constant >= 0
  Linear value = to_linear(b, node.rhs, ranges) - to_linear(b, node.lhs, ranges);
  if (less) value.constant -= 1;
  constexpr int64_t kMaxBound = int64_t{1} << 60;
  if (value.overflow || value.constant > kMaxBound || value.constant < -kMaxBound) return false;
  if (value.terms.size() != 1 || value.terms[0].degree != 1) return false;
  if (value.terms[0].coef > kMaxBound || value.terms[0].coef < -kMaxBound) return false;
  const Var* var = value.terms[0].atoms[0].as<Var>();
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    if (var == nullptr || block.iters[i].var->id != var->id) continue;
    const int64_t coef = value.terms[0].coef;
    if (coef > 0) {
      box[i].lo = std::max(box[i].lo, -floor_div(value.constant, coef));
    } else {
      box[i].hi = std::min(box[i].hi, floor_div(value.constant, -coef) + 1);
    }
    return true;
  }
  return false;
}

Result<void> check_block(const Block& block) {
  if (padding_of(block) == nullptr || block.init.defined()) {
    return unfit(block.id, "it is not one store of a select with a constant");
  }
  for (const IterVar& iter : block.iters) {
    if (iter.kind != IterKind::kSpatial)
      return unfit(block.id, "it has variables that are not spatial");
    if (!constant(iter.extent)) return unfit(block.id, "an extent is not constant");
  }
  if (reads(block, block.body.as<Store>()->buffer)) {
    return unfit(block.id, "it reads what it writes");
  }
  return {};
}

Result<PaddingPlan> plan_padding(const Program& program, BlockId id, LoopId loop_id) {
  PaddingPlan plan;
  const Dataflow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  PRUNERC_TRY(plan.site, find_loop(program, loop_id));
  plan.block = flow[place].block;
  const Block& block = *plan.block;
  PRUNERC_TRY_VOID(check_block(block));
  IrBuilder exprs(program);
  // Constants first is another order of writes.
  if (const std::string fault = order_fault(exprs, program, block); !fault.empty())
    return unfit(id, fault);
  Stmt inside(plan.site.loop());
  while (const Loop* loop = inside.as<Loop>()) {
    PRUNERC_TRY_VOID(check_serial(*loop));
    PRUNERC_TRY_VOID(constant_extent(*loop));
    plan.inner.push_back(loop);
    inside = loop->body;
  }
  if (!inside.is(Stmt(&block))) return error(Diag::kLoopNotAround, loop_id, id);
  std::set<const Loop*> bound;
  VarRanges ranges;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    const IterVar& iter = block.iters[i];
    ranges.bind(iter.var, iter.extent);
    plan.box.push_back({0, *constant(iter.extent)});
    const Loop* loop = plan.loop_of(i);
    const bool inner = std::any_of(plan.inner.begin(), plan.inner.end(), [&](const Loop* l) {
      return mentions(iter.binding, l->var->id);
    });
    const bool whole = loop != nullptr && constant(loop->extent) == constant(iter.extent);
    // A loop that is two variables cannot shrink to the boxes of both.
    plan.plain &= !inner || (whole && bound.insert(loop).second);
  }
  plan.plain &= bound.size() == plan.inner.size() && !block.guard.defined();
  IrBuilder b(program);
  for (Expr comparison : conjuncts(padding_of(block)->condition)) {
    if (!narrow(b, block, comparison, ranges, plan.box)) {
      return unfit(id, "the condition is no bound of single variables");
    }
  }
  bool all = true;
  for (std::size_t i = 0; i < plan.box.size(); ++i) {
    const Box& box = plan.box[i];
    if (box.lo >= box.hi) return unfit(id, "no instance is inside");
    all &= box.lo == 0 && box.hi == *constant(block.iters[i].extent);
  }
  if (all) return unfit(id, "every instance is inside");
  return plan;
}

// The block under copies of the loops, storing the constant.
Stmt fill_nest(IrBuilder& b, const PaddingPlan& plan, std::vector<Output>* outputs) {
  const Block& block = *plan.block;
  const Store& store = *block.body.as<Store>();
  Block fill = block;
  fill.id = b.fresh_block_id();
  const std::string name = std::string(block.name) + "_fill";
  fill.name = name;
  VarMap loops, vars;
  for (const Loop* loop : plan.inner) loops[loop->var->id] = b.fresh_var(loop->var->name);
  std::vector<IterVar> iters(block.iters.begin(), block.iters.end());
  for (IterVar& iter : iters) {
    const Var* var = b.fresh_var(iter.var->name);
    vars[iter.var->id] = var;
    iter.var = var;
    iter.binding = substitute(b, iter.binding, loops);
  }
  fill.iters = iters;
  if (fill.guard.defined()) fill.guard = substitute(b, fill.guard, loops);
  std::vector<Expr> at;
  for (Expr index : store.indices) at.push_back(substitute(b, index, vars));
  fill.body = b.store(store.buffer, at, padding_of(block)->on_false);
  rebuild_accesses(b, fill);
  outputs->push_back(fill.id);
  for (std::size_t i = 0; i < plan.inner.size(); ++i) outputs->push_back(b.fresh_loop_id());
  Stmt nest = b.block(fill);
  for (std::size_t i = plan.inner.size(); i-- > 0;) {
    const Loop& loop = *plan.inner[i];
    nest = make_loop(b, loops[loop.var->id].as<Var>(), *constant(loop.extent), nest,
                     std::get<LoopId>((*outputs)[i + 1]));
  }
  return nest;
}

// A domain cut to the box: by how much variables move, their ranges, and the extents of the loops.
struct Cut {
  const VarMap& shift;
  const VarRanges& ranges;
  const std::vector<int64_t>& extents;
};

// The block, whose iterations are cut already, copying what is not padding under the plan's loops.
Stmt copy_nest(IrBuilder& b, const PaddingPlan& plan, Block inside, const Cut& cut) {
  const Store& store = *plan.block->body.as<Store>();
  auto moved = [&](Expr e) { return simplify(b, substitute(b, e, cut.shift), cut.ranges); };
  std::vector<Expr> at;
  for (Expr index : store.indices) at.push_back(moved(index));
  inside.body = b.store(store.buffer, at, moved(padding_of(*plan.block)->on_true));
  rebuild_accesses(b, inside);
  Stmt nest = b.block(inside);
  for (std::size_t i = plan.inner.size(); i-- > 0;) {
    const Loop& loop = *plan.inner[i];
    nest = make_loop(b, loop.var, cut.extents[i], nest, loop.id);
  }
  return nest;
}

// The block under its loops, cut to the box: the domain shrinks to it, so that the guard leaves out
// nothing but values outside the domain.
Stmt guarded_nest(IrBuilder& b, const PaddingPlan& plan) {
  const Block& block = *plan.block;
  Block inside = block;
  std::vector<IterVar> iters(block.iters.begin(), block.iters.end());
  VarMap shift;
  VarRanges ranges;
  std::vector<int64_t> extents;
  for (const Loop* loop : plan.inner) extents.push_back(*constant(loop->extent));
  for (std::size_t i = 0; i < iters.size(); ++i) {
    const Box box = plan.box[i];
    const Expr at = iters[i].binding;
    if (box.lo > 0) {
      const Expr above = b.le(b.int_imm(box.lo), at);
      inside.guard = conjoin(b, inside.guard, above);
      shift[iters[i].var->id] = b.add(Expr(iters[i].var), b.int_imm(box.lo));
      iters[i].binding = b.sub(at, b.int_imm(box.lo));
    }
    if (box.hi < *constant(iters[i].extent)) {
      const Expr below = b.lt(at, b.int_imm(box.hi));
      inside.guard = conjoin(b, inside.guard, below);
    }
    iters[i].extent = b.int_imm(box.hi - box.lo);
    ranges.bind(iters[i].var, iters[i].extent);
  }
  inside.iters = iters;
  return copy_nest(b, plan, inside, {shift, ranges, extents});
}

// The same where each loop is a variable: the loops shrink.
Stmt inside_nest(IrBuilder& b, const PaddingPlan& plan) {
  const Block& block = *plan.block;
  Block inside = block;
  std::vector<IterVar> iters(block.iters.begin(), block.iters.end());
  VarMap shift;
  VarRanges ranges;
  std::vector<int64_t> extents(plan.inner.size());
  for (std::size_t i = 0; i < iters.size(); ++i) {
    const Box box = plan.box[i];
    const Loop* loop = plan.loop_of(i);
    if (loop == nullptr) {
      if (box.lo > 0) {
        inside.guard = conjoin(b, inside.guard, b.le(b.int_imm(box.lo), iters[i].binding));
      }
      if (box.hi < *constant(iters[i].extent)) {
        inside.guard = conjoin(b, inside.guard, b.lt(iters[i].binding, b.int_imm(box.hi)));
      }
    } else {
      iters[i].extent = b.int_imm(box.hi - box.lo);
      if (box.lo > 0) shift[iters[i].var->id] = b.add(Expr(iters[i].var), b.int_imm(box.lo));
      const auto at = std::find(plan.inner.begin(), plan.inner.end(), loop);
      extents[static_cast<std::size_t>(at - plan.inner.begin())] = box.hi - box.lo;
    }
    ranges.bind(iters[i].var, iters[i].extent);
  }
  inside.iters = iters;
  return copy_nest(b, plan, inside, {shift, ranges, extents});
}

Applied apply_padding(const Program& program, const PaddingPlan& plan) {
  IrBuilder b(program);
  Applied out;
  const Stmt fill = fill_nest(b, plan, &out.outputs);
  const Stmt inside = plan.plain ? inside_nest(b, plan) : guarded_nest(b, plan);
  out.program = b.finish(replace_at(b, plan.site, b.seq({fill, inside})));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kDecomposePadding>(const Program& program, const Call& call) {
  PRUNERC_TRY(const PaddingPlan plan, plan_padding(program, call.block(0), call.loop(1)));
  return apply_padding(program, plan);
}

}  // namespace prunerc::schedule
