// decompose_reduction(B, loop):
//     for i { for k @L { B: [i, k]  init { T[i] = e }  T[i] = T[i] + f(i, k) } }
//   ~>  decompose_reduction(B, @L)
//     for i { B_init: T[i] = e
//             for k @L { B: T[i] = T[i] + f(i, k) } }
//
// The spatial loops from `loop` downwards are copied for the init; the guard is taken where the
// reduction loops are 0.
//
// Requires: B has an init, stands in no other block, is the sole writer of T; `loop` is around B;
// no loop above it feeds a reduction variable; no loop feeds a spatial and a reduction variable;
// each instance occurs once below `loop`; nobody in there writes what the init reads. Legal
// because: the initialising instance is the first of its element, and no other element is touched
// between. Cost: O(size of B and its loops).
#include "ir/analysis/region.h"
#include "ir/analysis/simplify.h"
#include "ir/visit.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class DecomposePlan {
 public:
  const Site& block_site() const { return block_site_; }
  const Block& block() const { return *block_site_.block(); }
  LoopId loop() const { return loop_; }
  /// Loops from `loop` down to the block.
  const std::vector<const Loop*>& inner() const { return inner_; }

 private:
  friend Result<DecomposePlan> plan_decompose(const Program&, BlockId, LoopId);
  Site block_site_;
  LoopId loop_;
  std::vector<const Loop*> inner_;
};

bool init_reads_from(const Block& block, const Block& other) {
  bool found = false;
  walk(
      block.init, [](Stmt) { return true; },
      [&](Expr e) {
        walk(e, [&](Expr part) {
          const Load* load = part.as<Load>();
          found = found || (load != nullptr && writes(other, load->buffer));
          return !found;
        });
      });
  return found;
}

Result<DecomposePlan> plan_decompose(const Program& program, BlockId id, LoopId loop_id) {
  DecomposePlan plan;
  plan.loop_ = loop_id;
  const Flow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  PRUNERC_TRY(const Site loop_site, find_loop(program, loop_id));
  PRUNERC_TRY(plan.block_site_, find_block(program, id));
  const Block& block = plan.block();
  if (!block.init.defined()) return error(Diag::kBlockNoInit, id);
  PRUNERC_TRY_VOID(check_sole_writer(flow, place));
  const std::vector<const Loop*>& loops = flow[place].loops;
  const bool around = std::any_of(loops.begin(), loops.end(),
                                  [&](const Loop* loop) { return loop->id == loop_id; });
  if (!around) return error(Diag::kLoopNotAround, loop_id, id);
  bool below = false;
  for (const Loop* loop : loops) {
    below = below || loop->id == loop_id;
    const bool reduces = feeds_reduction(*loop, block);
    if (!below && reduces) return error(Diag::kReductionLoopAbove, loop->id, loop_id, id);
    if (!below) continue;
    PRUNERC_TRY_VOID(check_extent(*loop));
    plan.inner_.push_back(loop);
    for (const IterVar& iter : block.iters) {
      if (reduces && iter.kind == IterKind::kSpatial && mentions(iter.binding, loop->var->id)) {
        return error(Diag::kBlockNotSimple, id,
                     std::string("feed spatial and reduction variables from different loops"));
      }
    }
  }
  // Whatever stands beside the block in these loops would see the elements initialised early, or
  // write too late what the init reads.
  const Flow::Span span = flow.under(loop_id);
  for (std::size_t i = span.first; i < span.last; ++i) {
    if (i == place) continue;
    if (init_reads_from(block, *flow[i].block)) {
      return error(Diag::kBlockProducerLate, id, flow[i].block->id);
    }
    for (const Access& access : block.writes) {
      if (reads(*flow[i].block, access.buffer)) {
        return error(Diag::kCacheReaderInside, flow[i].block->id,
                     std::string(program.buffer(access.buffer).name));
      }
    }
  }
  IrBuilder b(program);
  VarRanges ranges = ranges_at(program, loop_site);
  for (const Loop* loop : plan.inner_) ranges.bind(loop->var, loop->extent);
  PRUNERC_TRY_VOID(
      on_instance(program, [&] { return check_instances_once(b, block, plan.inner_, ranges); }));
  return plan;
}

Applied apply_decompose(const Program& program, const DecomposePlan& plan) {
  IrBuilder b(program);
  const Block& block = plan.block();
  VarMap at_start;  // reduction loops at 0, spatial ones replaced by their copies
  std::vector<const Loop*> copied;
  std::vector<const Var*> vars;
  const Site loop_site = find_loop_in(program.root(), plan.loop());
  VarRanges ranges = ranges_at(program, loop_site);
  for (const Loop* loop : plan.inner()) {
    if (feeds_reduction(*loop, block)) {
      at_start[loop->var->id] = b.int_imm(0);
      continue;
    }
    copied.push_back(loop);
    vars.push_back(b.fresh_var(loop->var->name));
    at_start[loop->var->id] = vars.back();
    ranges.bind(vars.back(), loop->extent);
  }
  Block init{};
  init.id = b.fresh_block_id();
  const std::string name = std::string(block.name) + "_init";
  init.name = name;
  std::vector<IterVar> iters;
  VarMap body_vars;
  for (const IterVar& iter : block.iters) {
    if (iter.kind != IterKind::kSpatial) {
      body_vars[iter.var->id] = b.int_imm(0);
      continue;
    }
    const Var* var = b.fresh_var(iter.var->name);
    body_vars[iter.var->id] = var;
    iters.push_back(
        {var, iter.extent, iter.kind, simplify(b, substitute(b, iter.binding, at_start), ranges)});
  }
  init.iters = iters;
  init.body = substitute(b, block.init, body_vars);
  if (block.guard.defined()) {
    init.guard = simplify(b, substitute(b, block.guard, at_start), ranges);
  }
  rebuild_accesses(b, init);
  Applied out;
  Stmt nest = b.block(init);
  out.outputs.push_back(init.id);
  std::vector<LoopId> ids;
  for (std::size_t i = 0; i < copied.size(); ++i) ids.push_back(b.fresh_loop_id());
  for (std::size_t i = copied.size(); i-- > 0;) {
    Loop copy = *copied[i];
    copy.id = ids[i];
    copy.var = vars[i];
    copy.body = nest;
    nest = b.loop(copy);
  }
  out.outputs.insert(out.outputs.end(), ids.begin(), ids.end());
  Block update = block;
  update.init = Stmt();
  rebuild_accesses(b, update);
  const Stmt root = replace_at(b, plan.block_site(), b.block(update));
  const Site site = find_loop_in(root, plan.loop());
  out.program = b.finish(replace_at(b, site, b.seq({nest, site.path.back()})));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kDecomposeReduction>(const Program& program, const Call& call) {
  PRUNERC_TRY(const DecomposePlan plan, plan_decompose(program, call.block(0), call.loop(1)));
  return apply_decompose(program, plan);
}

}  // namespace prunerc::schedule
