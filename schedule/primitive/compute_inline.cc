// compute_inline(@P): a producer vanishes; its readers compute the value themselves. Needs: @P
// stores one intermediate at distinct variables: spatial variables, no init, one store that does
// not read its target, sole writer, sources with final values; readers follow it. After: each load
// of the intermediate is replaced by the value that @P would have stored.
//   for i in 9 { block @P [v: S(9) = i] { T[v] = X[v]*2f32 } }
//   for j in 8 { block @C [v: S(8) = j] { Y[v] = T[v + 1] } }
// ~>
//   for j in 8 { block @C [v: S(8) = j] { Y[v] = X[v + 1]*2f32 } }
#include "ir/analysis/region.h"
#include "ir/visit.h"
#include "schedule/legality/concurrency.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/elementwise.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/nest.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct InlinePlan {
  Site site;
  const Store* store = nullptr;
  /// Position of the variable in each dimension of the store, -1 for none.
  std::vector<int> subscripts;
};

Result<InlinePlan> plan_inline(const Program& program, BlockId id) {
  InlinePlan plan;
  const Dataflow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  PRUNERC_TRY(plan.site, find_block(program, id));
  const Block& block = *flow[place].block;
  PRUNERC_TRY_VOID(check_pure_store(flow, place));
  plan.store = block.body.as<Store>();
  PRUNERC_TRY_VOID(check_intermediate(program, plan.store->buffer));
  const std::optional<std::vector<int>> subscripts =
      variable_subscripts(block, plan.store->indices);
  if (!subscripts) return not_simple(block, "store to distinct variables");
  plan.subscripts = *subscripts;
  IrBuilder b(program);
  PRUNERC_TRY_VOID(check_sources_final(b, flow, place));
  for (const std::size_t reader : flow.readers(plan.store->buffer)) {
    if (reader < place) {
      return error(Diag::kBlockProducerLate, flow[reader].block->id, id);
    }
    PRUNERC_TRY_VOID(flow.find(flow[reader].block->id));
  }
  if (flow.blocks().size() == 1) return not_simple(block, "not be the only one");
  return plan;
}

Applied apply_inline(const Program& program, const InlinePlan& plan) {
  IrBuilder b(program);
  const Block& block = *plan.site.block();
  const BufferId buffer = plan.store->buffer;
  auto value_at = [&](std::span<const Expr> indices) {
    VarMap map;
    for (const IterVar& iter : block.iters) map[iter.var->id] = b.int_imm(0);
    for (std::size_t d = 0; d < indices.size(); ++d) {
      if (plan.subscripts[d] < 0) continue;
      map[block.iters[static_cast<std::size_t>(plan.subscripts[d])].var->id] = indices[d];
    }
    return substitute(b, plan.store->value, map);
  };
  StmtFn rewrite = [&](Stmt s) -> Stmt {
    const Block* reader = s.as<Block>();
    if (reader == nullptr) return map_children(b, s, rewrite, [](Expr e) { return e; });
    if (!reads(*reader, buffer)) return s;
    auto fe = [&](Expr e) { return replace_loads(b, e, buffer, value_at); };
    Block copy = *reader;
    copy.init = map_exprs(b, reader->init, fe);
    copy.body = map_exprs(b, reader->body, fe);
    rebuild_accesses(b, copy);
    return b.block(copy);
  };
  return {b.finish(rewrite(replace_at(b, plan.site, {}))), {}, {}};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kComputeInline>(const Program& program, const Call& call) {
  PRUNERC_TRY(const InlinePlan plan, plan_inline(program, call.block(0)));
  Applied out = apply_inline(program, plan);
  PRUNERC_TRY_VOID(recheck_concurrent_around(out.program, plan.site));
  return out;
}

}  // namespace prunerc::schedule
