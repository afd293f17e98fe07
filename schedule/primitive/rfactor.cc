// rfactor(@L, 0): partial results of a reduction loop, one per iteration, on a new axis.
// Needs: a known, declared or found combiner (DESIGN.md, D27); @L serial, for reduction variables
// only, in a chain from the outermost reduction loop down; each instance once; where the guard
// mentions @L it holds at the start of each partial result. After: floats may round otherwise.
//   for k in 8 @L { block @B [r: R(8) = k] { init { T[0] = 0f32 } T[0] = T[0] + X[r] } }
// ~>
//   for k in 8 @L { block "T_rf" @B1 [r: S(8) = k] { T_rf[r, 0] = X[r] } }
//   for k in 8 { block @B [r: R(8) = k] { init { T[0] = 0f32 } T[0] = T[0] + T_rf[r, 0] } }
#include "ir/analysis/accumulator.h"
#include "ir/analysis/combiner.h"
#include "ir/analysis/region.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/nest.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct RfactorPlan {
  Site block_site;
  const Loop* loop = nullptr;
  /// Either the one or the other.
  std::optional<Accumulator> accumulator;
  std::optional<Tuple> tuple;
  /// Loops from the outermost reduction loop down.
  std::vector<const Loop*> inner;
  int64_t axis = 0;

  const Block& block() const { return *block_site.block(); }
  /// What gets a partial buffer: targets, and a tuple's scratch.
  std::vector<const Store*> stores() const {
    if (accumulator) return accumulator->targets;
    std::vector<const Store*> out;
    for (const TupleStore& s : tuple->step) out.push_back(s.store);
    return out;
  }
  /// The place of the new dimension among those of a buffer; negative axes count from the end.
  std::size_t axis_in(const Store& store) const {
    const int64_t rank = static_cast<int64_t>(store.indices.size());
    return static_cast<std::size_t>(axis < 0 ? axis + rank + 1 : axis);
  }
};

bool feeds_spatial(const Loop& loop, const Block& block) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
    return iter.kind == IterKind::kSpatial && mentions(iter.binding, loop.var->id);
  });
}

Result<void> check_loops(const Block& block, const Loop& loop,
                         const std::vector<const Loop*>& inner) {
  for (std::size_t i = 0; i < inner.size(); ++i) {
    PRUNERC_TRY_VOID(check_extent(*inner[i]));
    if (feeds_spatial(*inner[i], block) && feeds_reduction(*inner[i], block)) {
      return error(Diag::kLoopNotReduction, inner[i]->id);
    }
    const Stmt body = inner[i]->body;
    const bool chained = i + 1 < inner.size() ? body.is(Stmt(inner[i + 1])) : body.is(Stmt(&block));
    if (!chained) {
      return error(Diag::kLoopsNotNested, i + 1 < inner.size() ? inner[i + 1]->id : loop.id,
                   inner[i]->id);
    }
  }
  return {};
}

// Every partial result must be initialised: where the other reduction loops are 0, the guard must
// not depend on L.
Result<void> check_guard(IrBuilder& b, const Block& block, const Loop& loop,
                         const std::vector<const Loop*>& all) {
  VarRanges ranges;
  VarMap others;
  for (const Loop* other : all) {
    ranges.bind(other->var, other->extent);
    if (other != &loop && feeds_reduction(*other, block)) {
      others[other->var->id] = b.int_imm(0);
    }
  }
  for (Expr conjunct : conjuncts(block.guard)) {
    if (!mentions(conjunct, loop.var->id)) continue;
    if (prove(substitute(b, conjunct, others), ranges) != Proof::kYes) {
      return error(Diag::kGuardMixed, block.id);
    }
  }
  return {};
}

// Any order and grouping of the instances gives the same, and each of them occurs once.
Result<void> check_instances(IrBuilder& b, const Program& program, const RfactorPlan& plan,
                             const std::vector<const Loop*>& all) {
  const Block& block = plan.block();
  const std::string fault = order_fault(b, program, block);
  if (!fault.empty()) return error(Diag::kBlockOrderFixed, block.id, fault);
  VarRanges ranges;
  for (const Loop* loop : all) ranges.bind(loop->var, loop->extent);
  PRUNERC_TRY_VOID(check_instances_once(b, block, plan.inner, ranges));
  return check_guard(b, block, *plan.loop, all);
}

Result<RfactorPlan> plan_rfactor(const Program& program, LoopId id, int64_t axis) {
  RfactorPlan plan;
  const Dataflow flow(program);
  PRUNERC_TRY(const Site loop_site, find_loop(program, id));
  plan.loop = loop_site.loop();
  PRUNERC_TRY_VOID(check_serial(*plan.loop));
  const std::vector<const Block*> below = leaf_blocks(plan.loop->body);
  if (below.size() != 1) return error(Diag::kLoopNotReduction, id);
  const Block& block = *below[0];
  PRUNERC_TRY(const std::size_t place, flow.find(block.id));
  PRUNERC_TRY(plan.block_site, find_block(program, block.id));
  if (!feeds_reduction(*plan.loop, block) || feeds_spatial(*plan.loop, block)) {
    return error(Diag::kLoopNotReduction, id);
  }
  if (!block.init.defined()) return error(Diag::kBlockNoInit, block.id);
  IrBuilder b(program);
  plan.accumulator = match_accumulator(b, block);
  if (plan.accumulator && !starts_from_nothing(b, *plan.accumulator, block))
    plan.accumulator.reset();
  if (!plan.accumulator) {
    std::string fault;
    const std::optional<CombinedTuple> found = find_combiner(b, block, &fault);
    if (!fault.empty()) return error(Diag::kReducerForm, block.id, fault);
    if (!found) {
      return with_detail(error(Diag::kReducerUnknown, block.id),
                         "other reductions say after their init how two partial results make one: "
                         "combine (a), (b) -> (a + b)");
    }
    plan.tuple = found->tuple;
  }
  PRUNERC_TRY_VOID(check_sole_writer(flow, place));
  for (const Loop* loop : flow[place].loops) {
    if (!plan.inner.empty() || feeds_reduction(*loop, block)) plan.inner.push_back(loop);
  }
  PRUNERC_TRY_VOID(check_loops(block, *plan.loop, plan.inner));
  int64_t rank = std::numeric_limits<int64_t>::max();
  for (const Store* store : plan.stores()) {
    rank = std::min(rank, static_cast<int64_t>(store->indices.size()));
  }
  if (axis < -(rank + 1) || axis > rank) {
    return error(Diag::kAxisRange, axis, -(rank + 1), rank);
  }
  plan.axis = axis;
  PRUNERC_TRY_VOID(
      on_instance(program, [&] { return check_instances(b, program, plan, flow[place].loops); }));
  return plan;
}

class RfactorRewriter {
 public:
  RfactorRewriter(const Program& program, const RfactorPlan& plan)
      : program_(program), plan_(plan), b_(program) {}

  Applied run() {
    for (const Store* store : plan_.stores()) {
      const Buffer target = program_.buffer(store->buffer);
      const std::vector<Expr> shape = with_axis(*store, target.shape, plan_.loop->extent);
      partial_.push_back(b_.add_buffer(std::string(target.name) + "_rf", target.dtype, shape,
                                       target.scope, BufferRole::kIntermediate));
    }
    const Stmt partial = partial_block();
    const Stmt combine = combine_nest();
    const Stmt root = replace_at(b_, plan_.block_site, partial);
    const Site site = find_loop_in(root, plan_.inner[0]->id);
    out_.program = b_.finish(replace_at(b_, site, b_.seq({site.path.back(), combine})));
    return std::move(out_);
  }

 private:
  std::vector<Expr> with_axis(const Store& store, std::span<const Expr> dims, Expr added) const {
    std::vector<Expr> out(dims.begin(), dims.end());
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(plan_.axis_in(store)), added);
    return out;
  }

  std::vector<Held> partials(const VarMap& vars, Expr on_axis) {
    const Store& store = *plan_.stores()[0];
    std::vector<Expr> indices;
    for (Expr index : store.indices) indices.push_back(substitute(b_, index, vars));
    indices = with_axis(store, indices, on_axis);
    std::vector<Held> out;
    for (const BufferId buffer : partial_) out.push_back({buffer, indices});
    return out;
  }

  // A tuple's init or body on the partial buffers.
  Stmt on_partials(Stmt s, const VarMap& vars, Expr on_axis) {
    const std::vector<const Store*> stores = plan_.stores();
    for (std::size_t i = 0; i < stores.size(); ++i) {
      const auto place = [&](std::span<const Expr> indices, const VarRanges&) {
        return with_axis(*stores[i], indices, on_axis);
      };
      s = move_accesses(b_, s, stores[i]->buffer, partial_[i], place);
    }
    return substitute(b_, s, vars);
  }

  Stmt combine_tuple(Expr on_axis) {
    const Tuple& tuple = *plan_.tuple;
    // Read again, as nodes of the new program.
    const Combiner& combiner = *read_combiner(b_, plan_.block())->combiner;
    const std::vector<const Store*> stores = plan_.stores();
    const auto right = [&](std::size_t target, std::span<const Expr> indices) {
      const Store* store = tuple.result(target).store;
      const auto at = std::find(stores.begin(), stores.end(), store) - stores.begin();
      return b_.load(partial_[static_cast<std::size_t>(at)], with_axis(*store, indices, on_axis));
    };
    return combine_into(b_, tuple, combiner, right);
  }

  // The old block with the loop turned spatial, in the old loops.
  Stmt partial_block() {
    const Block& old = plan_.block();
    Block block = old;
    block.id = b_.fresh_block_id();
    out_.outputs.push_back(block.id);
    const std::string name = std::string(old.name) + "_rf";
    block.name = name;
    std::vector<IterVar> iters;
    VarMap by_loop, by_iter;  // loop variable or old iteration variable -> new expression
    auto add = [&](std::string_view var_name, Expr extent, IterKind kind, Expr binding) {
      const Var* var = b_.fresh_var(var_name);
      iters.push_back({var, extent, kind, binding});
      return var;
    };
    for (const IterVar& iter : old.iters) {
      if (iter.kind != IterKind::kSpatial) continue;
      by_iter[iter.var->id] = add(iter.var->name, iter.extent, iter.kind, iter.binding);
    }
    const Var* on_axis = nullptr;
    VarRanges ranges;
    bool reduces = false;
    for (const Loop* loop : plan_.inner) {
      if (!feeds_reduction(*loop, old)) continue;
      const bool factored = loop == &*plan_.loop;
      const Var* var = add("v" + std::string(loop->var->name), loop->extent,
                           factored ? IterKind::kSpatial : IterKind::kReduce, loop->var);
      by_loop[loop->var->id] = var;
      ranges.bind(var, loop->extent);
      if (factored) on_axis = var;
      reduces |= !factored;
    }
    for (const IterVar& iter : old.iters) {
      if (iter.kind == IterKind::kSpatial) continue;
      by_iter[iter.var->id] = simplify(b_, substitute(b_, iter.binding, by_loop), ranges);
    }
    block.iters = iters;
    if (plan_.tuple) {
      block.init = on_partials(old.init, by_iter, on_axis);
      block.body = on_partials(old.body, by_iter, on_axis);
    } else {
      accumulate_partial(block, by_iter, on_axis, reduces);
    }
    rebuild_accesses(b_, block);
    return b_.block(block);
  }

  void accumulate_partial(Block& block, const VarMap& by_iter, Expr on_axis, bool reduces) {
    const std::vector<Held> targets = partials(by_iter, on_axis);
    const Accumulator& accumulator = *plan_.accumulator;
    std::vector<Expr> element;
    for (Expr part : accumulator.element) {
      element.push_back(part.defined() ? substitute(b_, part, by_iter) : Expr());
    }
    // A sum of one element is that element; a tuple needs its step.
    const bool accumulates = reduces || accumulator.kind != AccumulatorKind::kSingle;
    block.init = accumulates ? start_from_nothing(b_, accumulator, targets) : Stmt();
    block.body = accumulates ? accumulate(b_, accumulator, targets, element)
                             : b_.store(targets[0].buffer, targets[0].indices, element[0]);
  }

  // The old block id, now over the partial results.
  Stmt combine_nest() {
    const Block& old = plan_.block();
    VarMap by_loop;
    std::vector<const Loop*> copied;
    std::vector<const Var*> vars;
    VarRanges ranges;
    for (const Loop* loop : plan_.inner) {
      if (feeds_reduction(*loop, old)) {
        by_loop[loop->var->id] = b_.int_imm(0);
        continue;
      }
      copied.push_back(loop);
      vars.push_back(b_.fresh_var(loop->var->name));
      by_loop[loop->var->id] = vars.back();
      ranges.bind(vars.back(), loop->extent);
    }
    const Var* axis_loop = b_.fresh_var(plan_.loop->var->name);
    const Var* axis_iter = b_.fresh_var("v" + std::string(plan_.loop->var->name));
    Block block = old;
    std::vector<IterVar> iters;
    for (const IterVar& iter : old.iters) {
      if (iter.kind != IterKind::kSpatial) continue;
      iters.push_back(iter);
      iters.back().binding = substitute(b_, iter.binding, by_loop);
    }
    iters.push_back({axis_iter, plan_.loop->extent, IterKind::kReduce, axis_loop});
    block.iters = iters;
    if (old.guard.defined()) block.guard = start_guard(by_loop, ranges);
    if (plan_.tuple) {
      block.body = combine_tuple(axis_iter);
      block.init = clone_with_fresh_ids(b_, block.init);
    } else {
      std::vector<Held> targets;
      for (const Store* store : plan_.accumulator->targets) {
        targets.push_back({store->buffer, {store->indices.begin(), store->indices.end()}});
      }
      const std::vector<Held> from = partials({}, axis_iter);
      block.body =
          accumulate(b_, *plan_.accumulator, targets, element_of(b_, *plan_.accumulator, from));
    }
    rebuild_accesses(b_, block);
    return nest(copied, vars, axis_loop, b_.block(block));
  }

  // The guard where all reduction loops are 0.
  Expr start_guard(const VarMap& by_loop, const VarRanges& ranges) {
    VarRanges known = ranges;
    for (const Loop* loop : plan_.block_site.outer_loops()) {
      known.bind(loop->var, loop->extent);
    }
    return simplify(b_, substitute(b_, plan_.block().guard, by_loop), known);
  }

  Stmt nest(const std::vector<const Loop*>& copied, const std::vector<const Var*>& vars,
            const Var* axis_loop, Stmt body) {
    std::vector<LoopId> ids;
    for (std::size_t i = 0; i <= copied.size(); ++i) ids.push_back(b_.fresh_loop_id());
    body = make_loop(b_, axis_loop, plan_.loop->extent, body, ids.back());
    for (std::size_t i = copied.size(); i-- > 0;) {
      Loop copy = *copied[i];
      copy.id = ids[i];
      copy.var = vars[i];
      copy.body = body;
      body = b_.loop(copy);
    }
    out_.outputs.insert(out_.outputs.end(), ids.begin(), ids.end());
    return body;
  }

  const Program& program_;
  const RfactorPlan& plan_;
  IrBuilder b_;
  std::vector<BufferId> partial_;  // one for each target
  Applied out_;
};

Applied apply_rfactor(const Program& program, const RfactorPlan& plan) {
  return RfactorRewriter(program, plan).run();
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kRfactor>(const Program& program, const Call& call) {
  PRUNERC_TRY(const RfactorPlan plan, plan_rfactor(program, call.loop(0), call.integer(1)));
  return apply_rfactor(program, plan);
}

}  // namespace prunerc::schedule
