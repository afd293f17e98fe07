// reverse_compute_inline(@C): a consumer vanishes; its producer stores what it would have stored.
// Needs: both store once at distinct variables, as compute_inline; @C alone reads T, at one tuple
// of distinct variables over all of its domain; @C's other sources are final at @P.
// After: @P's store has @C's target and value, with @P's value in the place of T's elements.
//   for i in 8 { block @P [v: S(8) = i] { T[v] = X[v]*2f32 } }
//   for j in 8 { block @C [v: S(8) = j] { Y[v] = T[v] + 1f32 } }
// ~>
//   for i in 8 { block @P [v: S(8) = i] { Y[v] = X[v]*2f32 + 1f32 } }
#include "ir/analysis/region.h"
#include "ir/equal.h"
#include "ir/visit.h"
#include "schedule/legality/concurrency.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/elementwise.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/nest.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct ReverseInlinePlan {
  Site consumer;
  BlockId producer;
  BufferId buffer;
  /// For each variable of the consumer the position of the producer's variable, -1 for none.
  std::vector<int> producer_iter;
};

// The intermediate that the block reads and a block writes; all its loads must have the same
// subscripts, distinct variables.
Result<BufferId> find_intermediate(const Dataflow& flow, std::size_t place) {
  const Block& block = *flow[place].block;
  BufferId intermediate;
  for (const Access& access : block.reads) {
    const Buffer& buffer = flow.program().buffer(access.buffer);
    if (buffer.role != BufferRole::kIntermediate || flow.readers(buffer.id).size() != 1 ||
        buffer.id == intermediate) {
      continue;
    }
    const std::vector<std::size_t> writers = flow.writers(buffer.id);
    const Block* writer = writers.size() == 1 ? flow[writers[0]].block : nullptr;
    if (writer == nullptr || writer->init.defined() || has_reduce_iters(*writer)) continue;
    if (intermediate.valid())
      return not_simple(block, "read one intermediate that nobody else reads");
    intermediate = buffer.id;
  }
  if (!intermediate.valid())
    return not_simple(block, "read one intermediate that nobody else reads");
  return intermediate;
}

Result<ReverseInlinePlan> plan_reverse_inline(const Program& program, BlockId id) {
  ReverseInlinePlan plan;
  const Dataflow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  PRUNERC_TRY(plan.consumer, find_block(program, id));
  const Block& block = *flow[place].block;
  PRUNERC_TRY_VOID(check_pure_store(flow, place));
  IrBuilder b(program);
  PRUNERC_TRY_VOID(check_sources_final(b, flow, place));
  PRUNERC_TRY_VOID(check_movable(b, flow, place));
  PRUNERC_TRY(plan.buffer, find_intermediate(flow, place));
  PRUNERC_TRY(const std::vector<int> mine, load_subscripts(block, plan.buffer));
  const std::size_t writer = flow.writers(plan.buffer)[0];
  const Block& producer = *flow[writer].block;
  plan.producer = producer.id;
  PRUNERC_TRY_VOID(flow.find(producer.id));
  PRUNERC_TRY_VOID(check_pure_store(flow, writer));
  const std::optional<std::vector<int>> stored =
      variable_subscripts(producer, producer.body.as<Store>()->indices);
  if (!stored) return not_simple(producer, "store to distinct variables");
  plan.producer_iter.assign(block.iters.size(), -1);
  for (std::size_t d = 0; d < mine.size(); ++d) {
    if (mine[d] < 0) continue;
    plan.producer_iter[static_cast<std::size_t>(mine[d])] = (*stored)[d];
    // The consumer must want all that the producer makes: then nothing is computed that was not
    // before.
    const Expr wanted = block.iters[static_cast<std::size_t>(mine[d])].extent;
    const Expr made = (*stored)[d] < 0
                          ? b.int_imm(1)
                          : producer.iters[static_cast<std::size_t>((*stored)[d])].extent;
    const bool whole = is_closed(wanted) && structural_equal(wanted, made);
    if (!whole) return not_simple(block, "use all of the intermediate");
  }
  for (const Access& access : block.reads) {
    for (const std::size_t source : flow.writers(access.buffer)) {
      if (access.buffer == plan.buffer) continue;
      const bool outside = shared_loops(flow[source].loops, flow[writer].loops) == 0;
      if (source >= writer || !outside) {
        return error(Diag::kBlockProducerLate, id, flow[source].block->id);
      }
    }
  }
  return plan;
}

Applied apply_reverse_inline(const Program& program, const ReverseInlinePlan& plan) {
  IrBuilder b(program);
  const Block& consumer = *plan.consumer.block();
  const Store& sink = *consumer.body.as<Store>();
  StmtFn rewrite = [&](Stmt s) -> Stmt {
    const Block* producer = s.as<Block>();
    if (producer == nullptr) return map_children(b, s, rewrite, [](Expr e) { return e; });
    if (producer->id != plan.producer) return s;
    const Expr made = producer->body.as<Store>()->value;
    VarMap map;
    for (std::size_t i = 0; i < consumer.iters.size(); ++i) {
      const int from = plan.producer_iter[i];
      map[consumer.iters[i].var->id] =
          from < 0 ? b.int_imm(0) : Expr(producer->iters[static_cast<std::size_t>(from)].var);
    }
    std::vector<Expr> indices;
    for (Expr index : sink.indices) indices.push_back(substitute(b, index, map));
    const Expr outer = substitute(b, sink.value, map);
    const Expr value =
        replace_loads(b, outer, plan.buffer, [&](std::span<const Expr>) { return made; });
    Block copy = *producer;
    copy.body = b.store(sink.buffer, indices, value);
    rebuild_accesses(b, copy);
    return b.block(copy);
  };
  return {b.finish(rewrite(replace_at(b, plan.consumer, {}))), {}, {}};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kReverseComputeInline>(const Program& program,
                                                          const Call& call) {
  PRUNERC_TRY(const ReverseInlinePlan plan, plan_reverse_inline(program, call.block(0)));
  Applied out = apply_reverse_inline(program, plan);
  PRUNERC_TRY_VOID(recheck_concurrent_around(out.program, plan.consumer));
  return out;
}

}  // namespace prunerc::schedule
