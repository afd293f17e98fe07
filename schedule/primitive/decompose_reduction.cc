// decompose_reduction(@B, @L): the init of a reduction becomes a block of its own in front of @L.
// Needs: @L around @B, no loop above it feeds a reduction variable, and none feeds both kinds; each
// instance once below @L; sole writer; nobody in there writes what the init reads. After: elements
// are initialised before their first update; spatial loops from @L on are copied for that.
//   for k in 8 @L { block @B [r: R(8) = k] { init { T[0] = 0f32 } T[0] = T[0] + X[r] } }
// ~>
//   block "T_init" @B1 [] { T[0] = 0f32 }
//   for k in 8 @L { block @B [r: R(8) = k] { T[0] = T[0] + X[r] } }
#include "ir/analysis/region.h"
#include "ir/arith/simplify.h"
#include "ir/visit.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"

#include <algorithm>
#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct DecomposePlan {
  Site block_site;
  LoopId loop;
  /// Loops from `loop` down to the block.
  std::vector<const Loop*> inner;

  const Block& block() const { return *block_site.block(); }
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
  plan.loop = loop_id;
  const Dataflow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  PRUNERC_TRY(const Site loop_site, find_loop(program, loop_id));
  PRUNERC_TRY(plan.block_site, find_block(program, id));
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
    plan.inner.push_back(loop);
    for (const IterVar& iter : block.iters) {
      if (reduces && iter.kind == IterKind::kSpatial && mentions(iter.binding, loop->var->id)) {
        return error(Diag::kBlockNotSimple, id,
                     std::string("feed spatial and reduction variables from different loops"));
      }
    }
  }
  // Whatever stands beside the block in these loops would see the elements initialised early, or
  // write too late what the init reads.
  const Dataflow::Span span = flow.under(loop_id);
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
  for (const Loop* loop : plan.inner) ranges.bind(loop->var, loop->extent);
  PRUNERC_TRY_VOID(
      on_instance(program, [&] { return check_instances_once(b, block, plan.inner, ranges); }));
  return plan;
}

Applied apply_decompose(const Program& program, const DecomposePlan& plan) {
  IrBuilder b(program);
  const Block& block = plan.block();
  VarMap at_start;  // reduction loops at 0, spatial ones replaced by their copies
  std::vector<const Loop*> copied;
  std::vector<const Var*> vars;
  const Site loop_site = find_loop_in(program.root(), plan.loop);
  VarRanges ranges = ranges_at(program, loop_site);
  for (const Loop* loop : plan.inner) {
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
  const Stmt root = replace_at(b, plan.block_site, b.block(update));
  const Site site = find_loop_in(root, plan.loop);
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
