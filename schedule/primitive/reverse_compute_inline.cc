// reverse_compute_inline(@C): a consumer vanishes; its producer stores what it would have stored.
// Needs: both are pure stores, @P of its whole domain; @C alone reads T, at one element which tells
// the instance (variables, i*4 + j, (i // 4, i % 4)) and which @P makes; other sources final at @P.
// After: @P has @C's target and value; for a part or a map also its variables, and a guard.
//   for i in 8 { block @P [v: S(8) = i] { T[v] = X[v]*2f32 } }
//   for j in 8 { block @C [v: S(8) = j] { Y[v] = T[v] + 1f32 } }
// ~>
//   for i in 8 { block @P [v: S(8) = i] { Y[v] = X[v]*2f32 + 1f32 } }
#include "ir/analysis/region.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/visit.h"
#include "schedule/legality/bijection.h"
#include "schedule/legality/concurrency.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/elementwise.h"
#include "schedule/legality/instance_order.h"
#include "schedule/legality/lifetime.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/nest.h"

#include <algorithm>
#include <memory>
#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct ReverseInlinePlan {
  std::unique_ptr<IrBuilder> builder;  // owns the expressions
  Site consumer;
  Site producer;
  BufferId buffer;
  /// For each variable of the consumer the position of the producer's variable, -1 for none: if
  /// both use single variables and the consumer wants all of the intermediate.
  std::optional<std::vector<int>> producer_iter;
  /// Else: the elements that the producer stores and those that the consumer loads.
  std::optional<Bijection> stored, loaded;
  std::vector<Expr> loads_at;
};

// Why the block cannot be inlined into the block that writes the buffer; empty if it can.
std::string fault_of(const Dataflow& flow, std::size_t place, BufferId id) {
  const Buffer& buffer = flow.program().buffer(id);
  const std::string name = quoted_name(flow.program(), id);
  if (buffer.role != BufferRole::kIntermediate) return name + " is a parameter";
  if (flow.readers(id).size() != 1) return name + " has other readers";
  const std::vector<std::size_t> writers = flow.writers(id);
  if (writers.size() != 1) return name + " has several writers";
  const Block* writer = writers[0] == place ? nullptr : flow[writers[0]].block;
  if (writer == nullptr || writer->init.defined() || has_reduce_iters(*writer)) {
    return name + " is accumulated, not stored once";
  }
  return {};
}

// The intermediate that the block alone reads and that one block stores.
Result<BufferId> find_intermediate(const Dataflow& flow, std::size_t place) {
  const Block& block = *flow[place].block;
  BufferId intermediate;
  std::string faults;
  std::vector<BufferId> seen;
  for (const Access& access : block.reads) {
    if (std::find(seen.begin(), seen.end(), access.buffer) != seen.end()) continue;
    seen.push_back(access.buffer);
    const std::string fault = fault_of(flow, place, access.buffer);
    if (!fault.empty()) {
      faults += (faults.empty() ? "" : ", ") + fault;
    } else if (intermediate.valid()) {
      return not_simple(block, "read one stored intermediate, but reads " +
                                   quoted_name(flow.program(), intermediate) + " and " +
                                   quoted_name(flow.program(), access.buffer));
    } else {
      intermediate = access.buffer;
    }
  }
  if (intermediate.valid()) return intermediate;
  return not_simple(block, "read an intermediate that it alone reads and that one block stores" +
                               (faults.empty() ? "" : ": " + faults));
}

// Both use single variables, and the consumer wants all that is made: nothing is computed that was
// not before.
std::optional<std::vector<int>> plain_match(const Block& consumer, const Block& producer,
                                            std::span<const Expr> loads_at) {
  const std::optional<std::vector<int>> mine = variable_subscripts(consumer, loads_at);
  const std::optional<std::vector<int>> stored =
      variable_subscripts(producer, producer.body.as<Store>()->indices);
  if (!mine || !stored) return std::nullopt;
  std::vector<int> out(consumer.iters.size(), -1);
  for (std::size_t d = 0; d < mine->size(); ++d) {
    const int from = (*stored)[d];
    if ((*mine)[d] < 0) {
      // One element of several.
      const bool one = from < 0 || is_one(producer.iters[static_cast<std::size_t>(from)].extent);
      if (!one) return std::nullopt;
      continue;
    }
    const IterVar& iter = consumer.iters[static_cast<std::size_t>((*mine)[d])];
    out[static_cast<std::size_t>((*mine)[d])] = from;
    const bool whole =
        is_closed(iter.extent) &&
        (from < 0 ? is_one(iter.extent)
                  : structural_equal(iter.extent,
                                     producer.iters[static_cast<std::size_t>(from)].extent));
    if (!whole) return std::nullopt;
  }
  return out;
}

// Maps from instances to elements on both sides.
Result<void> plan_maps(const Block& consumer, const Block& producer, ReverseInlinePlan* plan) {
  IrBuilder& b = *plan->builder;
  plan->loaded = Bijection::of(b, consumer.iters, plan->loads_at);
  if (!plan->loaded || !plan->loaded->box()) {
    return not_simple(consumer, "read an interval of the intermediate, each element once");
  }
  plan->stored = Bijection::of(b, producer.iters, producer.body.as<Store>()->indices);
  if (!plan->stored || !plan->stored->box()) {
    return not_simple(producer, "store at an interval of elements, each once");
  }
  for (std::size_t d = 0; d < plan->loads_at.size(); ++d) {
    if (!(*plan->stored->box())[d].contains((*plan->loaded->box())[d])) {
      return not_simple(producer, "make all that its reader wants");
    }
  }
  return {};
}

Result<ReverseInlinePlan> plan_reverse_inline(const Program& program, BlockId id) {
  ReverseInlinePlan plan;
  plan.builder = std::make_unique<IrBuilder>(program);
  IrBuilder& b = *plan.builder;
  const Dataflow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  PRUNERC_TRY(plan.consumer, find_block(program, id));
  const Block& block = *flow[place].block;
  PRUNERC_TRY_VOID(check_pure_store(flow, place));
  PRUNERC_TRY_VOID(check_sources_final(b, flow, place));
  PRUNERC_TRY_VOID(check_movable(b, flow, place));
  PRUNERC_TRY(plan.buffer, find_intermediate(flow, place));
  PRUNERC_TRY(plan.loads_at, common_subscripts(block, plan.buffer));
  const std::size_t writer = flow.writers(plan.buffer)[0];
  const Block& producer = *flow[writer].block;
  PRUNERC_TRY_VOID(flow.find(producer.id));
  PRUNERC_TRY(plan.producer, find_block(program, producer.id));
  PRUNERC_TRY_VOID(check_pure_store(flow, writer));
  PRUNERC_TRY_VOID(check_growth(producer, producer.body.as<Store>()->value, block, plan.buffer));
  plan.producer_iter = plain_match(block, producer, plan.loads_at);
  if (!plan.producer_iter) PRUNERC_TRY_VOID(plan_maps(block, producer, &plan));
  // An instance whose element nobody makes, since a condition keeps it from reading it, would run
  // nowhere.
  if (!is_parametric(program) && !covers_domain(b, program, flow[writer])) {
    return not_simple(producer, "run over its whole iteration domain");
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

// What the consumer stores, in terms of its variables replaced by `map` and of the value that the
// producer makes.
Stmt sink_of(IrBuilder& b, const ReverseInlinePlan& plan, const VarMap& map, Expr made) {
  const Store& sink = *plan.consumer.block()->body.as<Store>();
  const auto moved = [&](Expr e) {
    return replace_loads(b, substitute(b, e, map), plan.buffer,
                         [&](std::span<const Expr>) { return made; });
  };
  std::vector<Expr> indices;
  for (Expr index : sink.indices) indices.push_back(moved(index));
  return b.store(sink.buffer, indices, moved(sink.value));
}

// The producer with its own variables.
Stmt with_own_variables(IrBuilder& b, const ReverseInlinePlan& plan) {
  const Block& consumer = *plan.consumer.block();
  Block out = *plan.producer.block();
  VarMap map;
  for (std::size_t i = 0; i < consumer.iters.size(); ++i) {
    const int from = (*plan.producer_iter)[i];
    map[consumer.iters[i].var->id] =
        from < 0 ? b.int_imm(0) : Expr(out.iters[static_cast<std::size_t>(from)].var);
  }
  out.body = sink_of(b, plan, map, out.body.as<Store>()->value);
  rebuild_accesses(b, out);
  return b.block(out);
}

// The producer with the consumer's variables: its loops reach the instance of the consumer that
// wants their element, and a guard leaves out elements that none wants.
Stmt with_consumers_variables(IrBuilder& b, const Program& program, const ReverseInlinePlan& plan) {
  const Block& consumer = *plan.consumer.block();
  const Block& producer = *plan.producer.block();
  const Store& made = *producer.body.as<Store>();
  const VarRanges loops = ranges_at(program, plan.producer);
  VarMap bindings;
  for (const IterVar& iter : producer.iters) bindings[iter.var->id] = iter.binding;
  std::vector<Expr> element;
  for (Expr index : made.indices) {
    element.push_back(simplify(b, substitute(b, index, bindings), loops));
  }
  Block out = producer;
  // A dimension of which all is wanted needs no condition.
  std::vector<Expr> ends;
  std::vector<Bijection::Run> wanted = *plan.loaded->box();
  for (std::size_t d = 0; d < wanted.size(); ++d) {
    const Bijection::Run& all = (*plan.stored->box())[d];
    if (wanted[d].first == all.first) wanted[d] = {0, wanted[d].first + wanted[d].count};
    ends.push_back(b.int_imm(all.first + all.count));
  }
  const Expr inside = inside_box(b, wanted, ends, element);
  if (inside.defined()) out.guard = conjoin(b, out.guard, inside);
  const std::vector<Expr> instance = plan.loaded->instance_at(b, element, loops);
  std::vector<IterVar> iters(consumer.iters.begin(), consumer.iters.end());
  VarRanges ranges;
  for (std::size_t i = 0; i < iters.size(); ++i) {
    iters[i].binding = instance[i];
    ranges.bind(iters[i].var, iters[i].extent);
  }
  const std::vector<Expr> source = plan.stored->instance_at(b, plan.loads_at, ranges);
  VarMap back;
  for (std::size_t i = 0; i < source.size(); ++i) back[producer.iters[i].var->id] = source[i];
  out.iters = iters;
  out.body = sink_of(b, plan, {}, substitute(b, made.value, back));
  rebuild_accesses(b, out);
  return b.block(out);
}

Applied apply_reverse_inline(const Program& program, const ReverseInlinePlan& plan) {
  IrBuilder& b = *plan.builder;
  const BlockId id = plan.producer.block()->id;
  const Stmt merged =
      plan.producer_iter ? with_own_variables(b, plan) : with_consumers_variables(b, program, plan);
  StmtFn rewrite = [&](Stmt s) -> Stmt {
    const Block* block = s.as<Block>();
    if (block == nullptr) return map_children(b, s, rewrite, [](Expr e) { return e; });
    return block->id == id ? merged : s;
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
  if (!plan.producer_iter) {
    PRUNERC_TRY_VOID(recheck_concurrent_around(out.program, plan.producer));
  }
  PRUNERC_TRY_VOID(check_nothing_lost(program, out.program));
  return out;
}

}  // namespace prunerc::schedule
