// compute_inline(@P): a producer vanishes; its readers compute the value. Needs: @P is one store of
// an intermediate, spatial variables, no init, target not read, sources final; the element tells
// the instance (variables, i*4 + j, (i // 4, i % 4)); readers follow; other writers touch none of
// @P's elements. After: loads of the intermediate are @P's value, where the element is @P's.
//   for i in 9 { block @P [v: S(9) = i] { T[v] = X[v]*2f32 } }
//   for j in 8 { block @C [v: S(8) = j] { Y[v] = T[v + 1] } }
// ~>
//   for j in 8 { block @C [v: S(8) = j] { Y[v] = X[v + 1]*2f32 } }
#include "ir/analysis/region.h"
#include "ir/arith/loop_index.h"
#include "ir/arith/simplify.h"
#include "ir/visit.h"
#include "schedule/legality/bijection.h"
#include "schedule/legality/concurrency.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/elementwise.h"
#include "schedule/legality/lifetime.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/nest.h"

#include <memory>
#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct InlinePlan {
  std::unique_ptr<IrBuilder> builder;  // owns the expressions
  Site site;
  const Store* store = nullptr;
  /// Position of the variable in each dimension of the store, -1 for none; empty for `stored`.
  std::vector<int> subscripts;
  std::optional<Bijection> stored;
  /// What the block writes of a buffer that others write as well; empty: all that is written.
  std::vector<Bijection::Run> part;
};

// Where an element is the block's: a condition, simplified.
Expr is_mine(IrBuilder& b, const InlinePlan& plan, std::span<const Expr> element,
             const VarRanges& ranges) {
  const Expr inside = inside_box(b, plan.part, b.buffer(plan.store->buffer).shape, element);
  return inside.defined() ? simplify(b, inside, ranges) : b.bool_imm(true);
}

// Does `other` neither write nor read an element of the part? What it touches counts, not what it
// declares: a reduction does not declare its accumulator.
bool stays_apart(IrBuilder& b, const InlinePlan& plan, const Block& other) {
  const BufferId buffer = plan.store->buffer;
  const VarRanges ranges = ranges_of(other);
  std::vector<VarId> vars;
  for (const IterVar& iter : other.iters) vars.push_back(iter.var->id);
  BufferRegion mine{buffer, {}};
  for (const Bijection::Run& run : plan.part) {
    mine.box.push_back({b.int_imm(run.first), b.int_imm(run.count)});
  }
  for (const Stmt part : {other.init, other.body}) {
    if (!part.defined()) continue;
    const Regions touched = touched_regions(b, part, ranges);
    for (const auto* list : {&touched.writes, &touched.reads}) {
      for (const BufferRegion& region : *list) {
        if (region.buffer != buffer) continue;
        const BufferRegion all = relax_region(b, region, vars, ranges);
        if (disjoint(b, mine, all, ranges) != Proof::kYes) return false;
      }
    }
  }
  return true;
}

// Several blocks write the buffer: each element that the block writes must be its alone.
Result<void> plan_part(IrBuilder& b, const Dataflow& flow, std::size_t place, InlinePlan* plan) {
  const Block& block = *flow[place].block;
  const Result<void> alone = check_sole_writer(flow, place);
  if (alone.ok()) return {};
  if (!plan->stored) plan->stored = Bijection::of(b, block.iters, plan->store->indices);
  if (!plan->stored || !plan->stored->box()) return alone;
  plan->part = *plan->stored->box();
  for (const std::size_t writer : flow.writers(plan->store->buffer)) {
    if (writer != place && !stays_apart(b, *plan, *flow[writer].block)) return alone;
  }
  return {};
}

Result<InlinePlan> plan_inline(const Program& program, BlockId id) {
  InlinePlan plan;
  plan.builder = std::make_unique<IrBuilder>(program);
  IrBuilder& b = *plan.builder;
  const Dataflow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  PRUNERC_TRY(plan.site, find_block(program, id));
  const Block& block = *flow[place].block;
  PRUNERC_TRY_VOID(check_store_form(block));
  plan.store = block.body.as<Store>();
  PRUNERC_TRY_VOID(plan_part(b, flow, place, &plan));
  PRUNERC_TRY_VOID(check_intermediate(program, plan.store->buffer));
  if (const auto found = variable_subscripts(block, plan.store->indices)) {
    plan.subscripts = *found;
  } else {
    plan.stored = Bijection::of(b, block.iters, plan.store->indices);
    if (!plan.stored) return not_simple(block, "store at elements that tell its instances apart");
  }
  PRUNERC_TRY_VOID(check_sources_final(b, flow, place));
  for (const std::size_t reader : flow.readers(plan.store->buffer)) {
    if (reader < place) {
      return error(Diag::kBlockProducerLate, flow[reader].block->id, id);
    }
    PRUNERC_TRY_VOID(flow.find(flow[reader].block->id));
    PRUNERC_TRY_VOID(
        check_growth(block, plan.store->value, *flow[reader].block, plan.store->buffer));
  }
  if (flow.blocks().size() == 1) return not_simple(block, "not be the only one");
  return plan;
}

// What the block would have stored at the element.
Expr value_at(IrBuilder& b, const InlinePlan& plan, std::span<const Expr> element,
              const VarRanges& ranges) {
  const Block& block = *plan.site.block();
  VarMap map;
  for (const IterVar& iter : block.iters) map[iter.var->id] = b.int_imm(0);
  if (plan.subscripts.empty() && plan.stored) {
    const std::vector<Expr> instance = plan.stored->instance_at(b, element, ranges);
    for (std::size_t i = 0; i < instance.size(); ++i) map[block.iters[i].var->id] = instance[i];
  } else {
    for (std::size_t d = 0; d < element.size(); ++d) {
      if (plan.subscripts[d] < 0) continue;
      map[block.iters[static_cast<std::size_t>(plan.subscripts[d])].var->id] = element[d];
    }
  }
  return substitute(b, plan.store->value, map);
}

Applied apply_inline(const InlinePlan& plan) {
  IrBuilder& b = *plan.builder;
  const BufferId buffer = plan.store->buffer;
  StmtFn rewrite = [&](Stmt s) -> Stmt {
    const Block* reader = s.as<Block>();
    if (reader == nullptr) return map_children(b, s, rewrite, [](Expr e) { return e; });
    // A block that writes the buffer reads none of this block's elements.
    if (!reads(*reader, buffer) || writes(*reader, buffer)) return s;
    const VarRanges ranges = ranges_of(*reader);
    auto replacement = [&](std::span<const Expr> element) {
      const Expr value = value_at(b, plan, element, ranges);
      if (plan.part.empty()) return value;
      const Expr mine = is_mine(b, plan, element, ranges);
      const Expr load = b.load(buffer, element);
      if (const std::optional<int64_t> known = constant_value(mine))
        return *known != 0 ? value : load;
      return b.select(mine, value, load);
    };
    auto fe = [&](Expr e) { return replace_loads(b, e, buffer, replacement); };
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
  Applied out = apply_inline(plan);
  PRUNERC_TRY_VOID(recheck_concurrent_around(out.program, plan.site));
  PRUNERC_TRY_VOID(check_nothing_lost(program, out.program));
  return out;
}

}  // namespace prunerc::schedule
