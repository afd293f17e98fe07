// compute_inline(P):                                 reverse_compute_inline(C):
//     for i { P: T[i] = f(i) }                           for i { P: T[i] = f(i) }
//     for j { C: Y[j] = g(T[j+1]) }                      for j { C: Y[j] = g(T[j]) }
//   ~>                                                 ~>
//     for j { C: Y[j] = g(f(j+1)) }                      for i { P: Y[i] = g(f(i)) }
//
// Requires, for the block that vanishes: no other block around or inside, all variables spatial, no
// init, one store, sole writer, sources with final values (flow.h). compute_inline: it writes an
// intermediate, does not read it, and its store's subscripts are distinct variables.
// reverse_compute_inline: it reads one intermediate T with one subscript tuple of distinct
// variables that covers its spatial domain; T has one writer, of the same form, and no other
// reader; other sources are final where that stands. Legal because: T[v] has the value f(v)
// wherever it may be read, and each Y[v] depends on T[v] alone. Cost: O(size of the blocks
// involved).
#include "ir/analysis/region.h"
#include "ir/equal.h"
#include "ir/visit.h"
#include "schedule/legality/concurrency.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/elementwise.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

Error unfit(const Block& block, const char* what) {
  return error(Diag::kBlockNotSimple, block.id, std::string(what));
}

Result<void> check_intermediate(const Program& program, BufferId buffer) {
  if (program.buffer(buffer).role == BufferRole::kIntermediate) return {};
  return error(Diag::kBufferNotIntermediate, std::string(program.buffer(buffer).name));
}

class InlinePlan {
 public:
  const Site& site() const { return site_; }
  const Store& store() const { return *store_; }
  /// Position of the variable in each dimension of the store, -1 for none.
  const std::vector<int>& subscripts() const { return subscripts_; }

 private:
  friend Result<InlinePlan> plan_inline(const Program&, BlockId);
  Site site_;
  const Store* store_ = nullptr;
  std::vector<int> subscripts_;
};

Result<InlinePlan> plan_inline(const Program& program, BlockId id) {
  InlinePlan plan;
  const Flow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  PRUNERC_TRY(plan.site_, find_block(program, id));
  const Block& block = *flow[place].block;
  PRUNERC_TRY_VOID(check_pure_store(flow, place));
  plan.store_ = block.body.as<Store>();
  PRUNERC_TRY_VOID(check_intermediate(program, plan.store_->buffer));
  const std::optional<std::vector<int>> subscripts = plain_subscripts(block, plan.store_->indices);
  if (!subscripts) return unfit(block, "store to distinct variables");
  plan.subscripts_ = *subscripts;
  IrBuilder b(program);
  PRUNERC_TRY_VOID(check_sources_final(b, flow, place));
  for (const std::size_t reader : flow.readers(plan.store_->buffer)) {
    if (reader < place) {
      return error(Diag::kBlockProducerLate, flow[reader].block->id, id);
    }
    PRUNERC_TRY_VOID(flow.find(flow[reader].block->id));
  }
  if (flow.blocks().size() == 1) return unfit(block, "not be the only one");
  return plan;
}

Applied apply_inline(const Program& program, const InlinePlan& plan) {
  IrBuilder b(program);
  const Block& block = *plan.site().block();
  const BufferId buffer = plan.store().buffer;
  auto value_at = [&](std::span<const Expr> indices) {
    VarMap map;
    for (const IterVar& iter : block.iters) map[iter.var->id] = b.int_imm(0);
    for (std::size_t d = 0; d < indices.size(); ++d) {
      if (plan.subscripts()[d] < 0) continue;
      map[block.iters[static_cast<std::size_t>(plan.subscripts()[d])].var->id] = indices[d];
    }
    return substitute(b, plan.store().value, map);
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
  Applied out;
  out.program = b.finish(rewrite(replace_at(b, plan.site(), {})));
  return out;
}

class ReverseInlinePlan {
 public:
  const Site& consumer() const { return consumer_; }
  BlockId producer() const { return producer_; }
  BufferId buffer() const { return buffer_; }
  /// For each variable of the consumer the position of the producer's variable, -1 for none.
  const std::vector<int>& producer_iter() const { return producer_iter_; }

 private:
  friend Result<ReverseInlinePlan> plan_reverse_inline(const Program&, BlockId);
  Site consumer_;
  BlockId producer_;
  BufferId buffer_;
  std::vector<int> producer_iter_;
};

// The intermediate that the block reads and a block writes; all its loads must have the same plain
// subscripts.
Result<BufferId> find_link(const Flow& flow, std::size_t place) {
  const Block& block = *flow[place].block;
  BufferId link;
  for (const Access& access : block.reads) {
    const Buffer& buffer = flow.program().buffer(access.buffer);
    if (buffer.role != BufferRole::kIntermediate || flow.readers(buffer.id).size() != 1 ||
        buffer.id == link) {
      continue;
    }
    const std::vector<std::size_t> writers = flow.writers(buffer.id);
    const Block* writer = writers.size() == 1 ? flow[writers[0]].block : nullptr;
    if (writer == nullptr || writer->init.defined() || has_reduce_iters(*writer)) continue;
    if (link.valid()) return unfit(block, "read one intermediate that nobody else reads");
    link = buffer.id;
  }
  if (!link.valid()) return unfit(block, "read one intermediate that nobody else reads");
  return link;
}

Result<ReverseInlinePlan> plan_reverse_inline(const Program& program, BlockId id) {
  ReverseInlinePlan plan;
  const Flow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  PRUNERC_TRY(plan.consumer_, find_block(program, id));
  const Block& block = *flow[place].block;
  PRUNERC_TRY_VOID(check_pure_store(flow, place));
  IrBuilder b(program);
  PRUNERC_TRY_VOID(check_sources_final(b, flow, place));
  PRUNERC_TRY_VOID(check_movable(b, flow, place));
  PRUNERC_TRY(plan.buffer_, find_link(flow, place));
  PRUNERC_TRY(const std::vector<int> mine, link_subscripts(block, plan.buffer_));
  const std::size_t writer = flow.writers(plan.buffer_)[0];
  const Block& producer = *flow[writer].block;
  plan.producer_ = producer.id;
  PRUNERC_TRY_VOID(flow.find(producer.id));
  PRUNERC_TRY_VOID(check_pure_store(flow, writer));
  const std::optional<std::vector<int>> theirs =
      plain_subscripts(producer, producer.body.as<Store>()->indices);
  if (!theirs) return unfit(producer, "store to distinct variables");
  plan.producer_iter_.assign(block.iters.size(), -1);
  for (std::size_t d = 0; d < mine.size(); ++d) {
    if (mine[d] < 0) continue;
    plan.producer_iter_[static_cast<std::size_t>(mine[d])] = (*theirs)[d];
    // The consumer must want all that the producer makes: then nothing is computed that was not
    // before.
    const Expr wanted = block.iters[static_cast<std::size_t>(mine[d])].extent;
    const Expr made = (*theirs)[d] < 0
                          ? b.int_imm(1)
                          : producer.iters[static_cast<std::size_t>((*theirs)[d])].extent;
    const bool whole = is_closed(wanted) && structural_equal(wanted, made);
    if (!whole) return unfit(block, "use all of the intermediate");
  }
  for (const Access& access : block.reads) {
    for (const std::size_t source : flow.writers(access.buffer)) {
      if (access.buffer == plan.buffer_) continue;
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
  const Block& consumer = *plan.consumer().block();
  const Store& sink = *consumer.body.as<Store>();
  StmtFn rewrite = [&](Stmt s) -> Stmt {
    const Block* producer = s.as<Block>();
    if (producer == nullptr) return map_children(b, s, rewrite, [](Expr e) { return e; });
    if (producer->id != plan.producer()) return s;
    const Expr made = producer->body.as<Store>()->value;
    VarMap map;
    for (std::size_t i = 0; i < consumer.iters.size(); ++i) {
      const int from = plan.producer_iter()[i];
      map[consumer.iters[i].var->id] =
          from < 0 ? b.int_imm(0) : Expr(producer->iters[static_cast<std::size_t>(from)].var);
    }
    std::vector<Expr> indices;
    for (Expr index : sink.indices) indices.push_back(substitute(b, index, map));
    const Expr outer = substitute(b, sink.value, map);
    const Expr value =
        replace_loads(b, outer, plan.buffer(), [&](std::span<const Expr>) { return made; });
    Block copy = *producer;
    copy.body = b.store(sink.buffer, indices, value);
    rebuild_accesses(b, copy);
    return b.block(copy);
  };
  Applied out;
  out.program = b.finish(rewrite(replace_at(b, plan.consumer(), {})));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kComputeInline>(const Program& program, const Call& call) {
  PRUNERC_TRY(const InlinePlan plan, plan_inline(program, call.block(0)));
  Applied out = apply_inline(program, plan);
  PRUNERC_TRY_VOID(recheck_left(out.program, plan.site()));
  return out;
}

template <>
Result<Applied> run<PrimitiveKind::kReverseComputeInline>(const Program& program,
                                                          const Call& call) {
  PRUNERC_TRY(const ReverseInlinePlan plan, plan_reverse_inline(program, call.block(0)));
  Applied out = apply_reverse_inline(program, plan);
  PRUNERC_TRY_VOID(recheck_left(out.program, plan.consumer()));
  return out;
}

}  // namespace prunerc::schedule
