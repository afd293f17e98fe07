// scan(@B): each element joins one update to the element before it, instead of all updates so far.
// Needs: a select that lets k <= j (or k < j) through, else the identity, for one reduction k and a
// spatial j; no other j in the update; serial loops, k's inside; sole writer. After: j is opaque.
//   for j in 8 { for k in 8 { block @B [vj: S(8) = j, vk: R(8) = k] {
//     init { T[vj] = 0f32 } T[vj] = T[vj] + select(vk <= vj, X[vk], 0f32) } } }
// ~>
//   for j in 8 { block @B [vj: O(8) = j] {
//     T[vj] = select(1 <= vj, T[vj - 1], 0f32) + X[vj] } }
#include "ir/analysis/accumulator.h"
#include "ir/analysis/region.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/nest.h"
#include "schedule/rewrite/site.h"

#include <optional>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

// An iteration variable with the loop that is it.
struct Counted {
  std::size_t iter = 0;
  std::size_t depth = 0;  // of its loop
  int64_t extent = 0;
};

struct ScanPlan {
  LeafBlock leaf;
  Counted along, reduced;
  Reducer reducer;
  Expr update;               // what is added, by the reduction variable
  bool is_inclusive = true;  // with the element's own update
};

Error unfit(BlockId id, std::string what) {
  return error(Diag::kBlockNotSimple, id, std::move(what));
}

std::optional<Counted> counted(const LeafBlock& leaf, std::size_t iter) {
  const IterVar& var = leaf.block->iters[iter];
  const auto* bound = var.binding.as<Var>();
  const std::optional<int64_t> extent = constant(var.extent);
  if (bound == nullptr || !extent) return std::nullopt;
  for (std::size_t d = 0; d < leaf.loops.size(); ++d) {
    if (leaf.loops[d]->var->id != bound->id) continue;
    if (constant(leaf.loops[d]->extent) != extent) return std::nullopt;
    for (std::size_t i = 0; i < leaf.block->iters.size(); ++i) {
      if (i != iter && mentions(leaf.block->iters[i].binding, bound->id)) return std::nullopt;
    }
    return Counted{iter, d, *extent};
  }
  return std::nullopt;
}

// Which spatial variable bounds the reduction variable in `condition`: k <= j, or k < j.
std::optional<std::size_t> bound_of(IrBuilder& b, const Block& block, Expr condition, Expr k,
                                    bool* is_inclusive) {
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].kind != IterKind::kSpatial) continue;
    const Expr j = block.iters[i].var;
    *is_inclusive = structural_equal(condition, b.le(k, j));
    if (*is_inclusive || structural_equal(condition, b.lt(k, j))) return i;
  }
  return std::nullopt;
}

Result<ScanPlan> plan_scan(const Program& program, BlockId id) {
  ScanPlan plan;
  const Dataflow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  plan.leaf = flow[place];
  const Block& block = *plan.leaf.block;
  IrBuilder b(program);
  const std::string fault = order_fault(b, program, block);
  if (!fault.empty()) return error(Diag::kBlockOrderFixed, id, fault);
  const std::optional<Reducer> reducer = match_reducer(block);
  std::optional<std::size_t> reduction;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    if (block.iters[i].kind == IterKind::kSpatial) continue;
    if (reduction) return unfit(id, "reduce along one variable");
    reduction = i;
  }
  const auto* init = block.init.defined() ? block.init.as<Store>() : nullptr;
  if (!reducer || !reduction || init == nullptr || !is_identity(reducer->op, init->value)) {
    return unfit(id, "accumulate from an init that is the identity");
  }
  plan.reducer = *reducer;
  const Expr k = block.iters[*reduction].var;
  const auto* chosen = reducer->update.as<Select>();
  std::optional<std::size_t> along;
  if (chosen != nullptr && is_identity(reducer->op, chosen->on_false)) {
    along = bound_of(b, block, chosen->condition, k, &plan.is_inclusive);
  }
  if (!along) return unfit(id, "take what it reduces up to a spatial variable, else the identity");
  plan.update = chosen->on_true;
  const VarId along_var = block.iters[*along].var->id, k_var = block.iters[*reduction].var->id;
  if (mentions(plan.update, along_var)) {
    return unfit(id, "reduce what does not depend on where it ends");
  }
  const std::optional<Counted> outer = counted(plan.leaf, *along);
  const std::optional<Counted> inner = counted(plan.leaf, *reduction);
  if (!outer || !inner || inner->depth < outer->depth) {
    return unfit(id, "have a loop of its own for each of both variables, the reduction's inside");
  }
  if (inner->extent < outer->extent - (plan.is_inclusive ? 0 : 1)) {
    return unfit(id, "reduce as far as its elements reach");
  }
  const Loop& loop = *plan.leaf.loops[inner->depth];
  const VarId decided[] = {plan.leaf.loops[outer->depth]->var->id, loop.var->id, along_var, k_var};
  if (block.guard.defined() && mentions(block.guard, decided)) {
    return unfit(id, "have a guard that says nothing of both variables");
  }
  PRUNERC_TRY_VOID(check_serial(loop));
  PRUNERC_TRY_VOID(check_serial(*plan.leaf.loops[outer->depth]));
  if (leaf_blocks(&loop).size() != 1) return unfit(id, "be alone in its reduction loop");
  PRUNERC_TRY_VOID(check_sole_writer(flow, place));
  PRUNERC_TRY_VOID(check_sources_final(b, flow, place));
  plan.along = *outer;
  plan.reduced = *inner;
  return plan;
}

Applied apply_scan(const Program& program, const ScanPlan& plan) {
  IrBuilder b(program);
  const Block& block = *plan.leaf.block;
  const Store& store = *plan.reducer.store;
  const Expr j = block.iters[plan.along.iter].var;
  const Expr before = b.sub(j, b.int_imm(1));
  const VarId j_id = block.iters[plan.along.iter].var->id;
  std::vector<Expr> previous;
  for (Expr index : store.indices) previous.push_back(substitute(b, index, {{j_id, before}}));
  const Expr identity = identity_of(b, plan.reducer.op, store.value.dtype());
  const Expr is_later = b.lt(b.int_imm(0), j);
  const VarId k_id = block.iters[plan.reduced.iter].var->id;
  const Expr last = b.load(store.buffer, previous);
  const auto joined = [&](Expr x, Expr at) {
    return b.binary(plan.reducer.op, x, substitute(b, plan.update, {{k_id, at}}));
  };
  Block changed = block;
  changed.init = Stmt();
  const Expr value = plan.is_inclusive ? joined(b.select(is_later, last, identity), j)
                                       : b.select(is_later, joined(last, before), identity);
  VarRanges ranges;
  std::vector<IterVar> iters;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    if (i == plan.reduced.iter) continue;
    iters.push_back(block.iters[i]);
    if (i == plan.along.iter) iters.back().kind = IterKind::kOpaque;
    ranges.bind(iters.back().var, iters.back().extent);
  }
  changed.iters = iters;
  changed.body = map_exprs(b, b.store(store.buffer, store.indices, value),
                           [&](Expr e) { return simplify(b, e, ranges); });
  rebuild_accesses(b, changed);
  Stmt nest = b.block(changed);
  for (std::size_t d = plan.leaf.loops.size(); --d > plan.reduced.depth;) {
    Loop inner = *plan.leaf.loops[d];
    inner.body = nest;
    nest = b.loop(inner);
  }
  const Site site = find_loop_in(program.root(), plan.leaf.loops[plan.reduced.depth]->id);
  Applied out;
  out.program = b.finish(replace_at(b, site, nest));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kScan>(const Program& program, const Call& call) {
  PRUNERC_TRY(const ScanPlan plan, plan_scan(program, call.block(0)));
  return apply_scan(program, plan);
}

}  // namespace prunerc::schedule
