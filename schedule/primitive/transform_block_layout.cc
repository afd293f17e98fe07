// transform_block_layout(@B, "(i, j) -> (i*8 + j)"): a bijection of the variables, each new one a
// loop. Needs: a canonical nest; no new variable mixes spatial and reduction variables; instances
// may be reordered. After: each instance once; 0 is mapped to 0, so that the initialising one comes
// first.
//   for i in 4 { for j in 8 { block @B [vi: S(4) = i, vj: S(8) = j] { T[vi, vj] = X[vi, vj] } } }
// ~>
//   for i0 in 32 { block @B [v0: S(32) = i0] { T[v0 // 8, v0 % 8] = X[v0 // 8, v0 % 8] } }
#include "ir/analysis/region.h"
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/tensor/index_map.h"
#include "schedule/legality/canonical_nest.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/nest.h"

#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct BlockLayoutPlan {
  LeafBlock leaf;
  Site site;  // of the nest
  IndexMap map;
  Layout layout;
  std::vector<IterKind> kinds;  // of the new variables
};

Error unfit(BlockId id, std::string what) {
  return error(Diag::kBlockNotSimple, id, std::move(what));
}

Result<BlockLayoutPlan> plan_block_layout(const Program& program, BlockId id,
                                          const std::string& text) {
  BlockLayoutPlan plan;
  const Dataflow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  plan.leaf = flow[place];
  const Block& block = *plan.leaf.block;
  const std::string nest_fault = canonical_nest_fault(program, plan.leaf);
  if (!nest_fault.empty()) return unfit(id, "stand in a plain nest, but " + nest_fault);
  IrBuilder b(program);
  const std::string fault = order_fault(b, program, block);
  if (!fault.empty()) return error(Diag::kBlockOrderFixed, id, fault);
  PRUNERC_TRY(plan.map, IndexMap::parse(text));
  std::vector<int64_t> domain;
  for (const IterVar& iter : block.iters) domain.push_back(*constant(iter.extent));
  PRUNERC_TRY(plan.layout, make_layout(plan.map, domain));
  if (plan.layout.pads || plan.layout.whole != domain) {
    return unfit(id, "be mapped onto a whole box");
  }
  for (int o = 0; o < plan.map.num_outputs(); ++o) {
    bool reduce = false, spatial = false;
    for (std::size_t i = 0; i < domain.size(); ++i) {
      if (domain[i] == 1 || !plan.map.uses(o, static_cast<int>(i))) continue;
      const bool is_spatial = block.iters[i].kind == IterKind::kSpatial;
      spatial |= is_spatial;
      reduce |= !is_spatial;
    }
    if (reduce && spatial) return unfit(id, "keep spatial and reduction variables apart");
    plan.kinds.push_back(reduce ? IterKind::kReduce : IterKind::kSpatial);
  }
  if (plan.leaf.loops.empty()) {
    PRUNERC_TRY(plan.site, find_block(program, id));
  } else {
    PRUNERC_TRY(plan.site, find_loop(program, plan.leaf.loops[0]->id));
  }
  return plan;
}

Applied apply_block_layout(const Program& program, const BlockLayoutPlan& plan) {
  IrBuilder b(program);
  const Block& block = *plan.leaf.block;
  const std::vector<int64_t>& shape = plan.layout.shape;
  VarRanges ranges;
  std::vector<IterVar> iters;
  std::vector<Expr> vars;
  std::vector<const Var*> loop_vars;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    loop_vars.push_back(b.fresh_var("i" + std::to_string(d)));
    const Var* var = b.fresh_var("v" + std::to_string(d));
    iters.push_back({var, b.int_imm(shape[d]), plan.kinds[d], loop_vars.back()});
    vars.emplace_back(var);
    // A variable of extent 1 stays in the subscripts, where it says which dimension is whose.
    if (shape[d] != 1) ranges.bind(var, b.int_imm(shape[d]));
  }
  VarMap values;
  const std::vector<Expr> old = invert_layout(b, plan.map, plan.layout, vars, ranges);
  for (std::size_t i = 0; i < old.size(); ++i) values[block.iters[i].var->id] = old[i];
  auto moved = [&](Stmt s) {
    if (!s.defined()) return s;
    return map_exprs(b, substitute(b, s, values), [&](Expr e) { return simplify(b, e, ranges); });
  };
  Block changed = block;
  changed.iters = iters;
  changed.init = moved(block.init);
  changed.body = moved(block.body);
  rebuild_accesses(b, changed);
  Applied out;
  for (std::size_t d = 0; d < shape.size(); ++d) out.outputs.push_back(b.fresh_loop_id());
  Stmt nest = b.block(changed);
  for (std::size_t d = shape.size(); d-- > 0;) {
    nest = make_loop(b, loop_vars[d], shape[d], nest, std::get<LoopId>(out.outputs[d]));
  }
  out.program = b.finish(replace_at(b, plan.site, nest));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kTransformBlockLayout>(const Program& program,
                                                          const Call& call) {
  PRUNERC_TRY(const BlockLayoutPlan plan, plan_block_layout(program, call.block(0), call.text(1)));
  return apply_block_layout(program, plan);
}

}  // namespace prunerc::schedule
