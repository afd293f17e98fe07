// reorder([@L1, @L0]): loops of one chain take the named order in the places they have. Needs: a
// chain in which each loop is the only statement of the one before; and either iterations of the
// permuted segment touch disjoint parts of all that is written there, or one block whose instances
// may run in any order (D8). After: no dependence is reversed, or only a reducer reassociated.
//   for i in 4 @L0 { for j in 8 @L1 { block @B [v: S(4) = i, w: S(8) = j] { T[v, w] = X[v, w] } } }
// ~>
//   for j in 8 @L1 { for i in 4 @L0 { block @B [v: S(4) = i, w: S(8) = j] { T[v, w] = X[v, w] } } }
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/legality/loop_dependence.h"
#include "schedule/primitive.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct ReorderPlan {
  Site site;                       // the outermost loop of the segment
  std::vector<const Loop*> order;  // new order of the segment
  Stmt body;                       // below the segment
};

bool named(const std::vector<LoopId>& ids, LoopId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// The chain from the outermost named loop down to the innermost named one.
Result<std::vector<const Loop*>> find_chain(const Program& program, const std::vector<LoopId>& ids,
                                            Site* top) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    PRUNERC_TRY(Site site, find_loop(program, ids[i]));
    if (i == 0 || site.path.size() < top->path.size()) *top = std::move(site);
    for (std::size_t k = 0; k < i; ++k) {
      if (ids[k] == ids[i]) return error(Diag::kLoopNamedTwice, ids[i]);
    }
  }
  std::vector<const Loop*> chain;
  std::size_t seen = 0;
  for (const Loop* loop = top->loop(); loop != nullptr && seen < ids.size();
       loop = loop->body.as<Loop>()) {
    PRUNERC_TRY_VOID(check_extent(*loop));
    chain.push_back(loop);
    if (named(ids, loop->id)) ++seen;
  }
  if (seen < ids.size()) {
    for (LoopId id : ids) {
      const bool found =
          std::any_of(chain.begin(), chain.end(), [&](const Loop* loop) { return loop->id == id; });
      if (!found) return error(Diag::kLoopsNotNested, id, chain.back()->id);
    }
  }
  return chain;
}

// Rule (b): one block whose instances commute.
Result<void> check_commuting(IrBuilder& b, const Program& program, const Site& top,
                             std::span<const Loop* const> chain, BufferId buffer) {
  const std::vector<LeafBlock> blocks = leaves(chain.back()->body);
  if (blocks.size() != 1) {
    return error(Diag::kBlocksDepend, chain[0]->id, quoted_name(program, buffer));
  }
  const LeafBlock& leaf = blocks[0];
  const std::string fault = order_fault(b, program, *leaf.block);
  if (!fault.empty()) return error(Diag::kBlockOrderFixed, leaf.block->id, fault);
  if (!has_reduce_iters(*leaf.block)) return {};
  VarRanges ranges = ranges_at(program, top);
  std::vector<const Loop*> loops(chain.begin(), chain.end());
  loops.insert(loops.end(), leaf.loops.begin(), leaf.loops.end());
  for (const Loop* loop : loops) ranges.bind(loop->var, loop->extent);
  return check_instances_once(b, *leaf.block, loops, ranges);
}

Result<void> check_order_free(const Program& program, const Site& top,
                              std::span<const Loop* const> chain) {
  PRUNERC_TRY_VOID(check_holds_blocks(*chain.back()));
  IrBuilder b(program);
  const BufferId buffer =
      dependent_buffer(b, program, top, chain, Privatization::kAlways, Effort::kQuick);
  if (!buffer.valid()) return {};
  const Result<void> commuting = check_commuting(b, program, top, chain, buffer);
  if (commuting.ok()) return {};
  const bool apart =
      !dependent_buffer(b, program, top, chain, Privatization::kAlways, Effort::kExact).valid();
  return apart ? Result<void>() : commuting;
}

Result<ReorderPlan> plan_reorder(const Program& program, const std::vector<LoopId>& ids) {
  if (ids.empty()) return error(Diag::kLoopListEmpty, std::string("reorder"));
  ReorderPlan plan;
  PRUNERC_TRY(const std::vector<const Loop*> chain, find_chain(program, ids, &plan.site));
  plan.body = chain.back()->body;
  std::size_t next = 0;
  for (const Loop* loop : chain) {
    if (named(ids, loop->id)) {
      const LoopId wanted = ids[next++];
      loop = *std::find_if(chain.begin(), chain.end(),
                           [&](const Loop* other) { return other->id == wanted; });
    }
    plan.order.push_back(loop);
  }
  if (plan.order == chain) return plan;
  for (const Loop* loop : chain) {
    // What a parallel or vectorized loop promises holds for the loops around it as they are.
    if (loop->loop_kind != LoopKind::kSerial && loop->loop_kind != LoopKind::kUnrolled) {
      return error(Diag::kLoopNotSerial, loop->id, std::string(to_string(loop->loop_kind)));
    }
  }
  PRUNERC_TRY_VOID(
      on_instance(program, [&] { return check_order_free(program, plan.site, chain); }));
  return plan;
}

Applied apply_reorder(const Program& program, const ReorderPlan& plan) {
  IrBuilder b(program);
  Stmt nest = plan.body;
  for (std::size_t i = plan.order.size(); i-- > 0;) {
    Loop copy = *plan.order[i];
    copy.body = nest;
    nest = b.loop(copy);
  }
  return {b.finish(replace_at(b, plan.site, nest)), {}, {}};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kReorder>(const Program& program, const Call& call) {
  PRUNERC_TRY(const ReorderPlan plan, plan_reorder(program, call.loops(0)));
  return apply_reorder(program, plan);
}

}  // namespace prunerc::schedule
