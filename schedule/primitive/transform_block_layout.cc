// transform_block_layout(B, map):
//     for n { for h { for w { for c { B: [vn, vh, vw, vc: R]  .. } } } }
//   ~>  transform_block_layout(@B, "(n, h, w, c) -> (n*64 + h*8 + w, c)")
//     for i { for k { B: [vi, vk: R]  .. with vn = vi // 64, vh = vi // 8 % 8, vw = vi % 8, vc = vk
//     } }
//
// Requires: a plain nest (one loop per variable, straight around the block, outermost); the map is
// a bijection of the domain onto a box; no new variable mixes spatial and reduction variables; the
// block's instances may be reordered.
// Legal because: each instance runs once, and 0 is mapped to 0, so that the initialising instance
// still comes first for its element.
#include "ir/analysis/region.h"
#include "ir/analysis/simplify.h"
#include "ir/map.h"
#include "ir/tensor/index_map.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/nest.h"

#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class BlockLayoutPlan {
 public:
  const LeafBlock& leaf() const { return leaf_; }
  const Site& site() const { return site_; }
  const IndexMap& map() const { return map_; }
  const Layout& layout() const { return layout_; }
  const std::vector<IterKind>& kinds() const { return kinds_; }

 private:
  friend Result<BlockLayoutPlan> plan_block_layout(const Program&, BlockId, const std::string&);
  LeafBlock leaf_;
  Site site_;  // of the nest
  IndexMap map_;
  Layout layout_;
  std::vector<IterKind> kinds_;  // of the new variables
};

Error unfit(BlockId id, std::string what) {
  return error(Diag::kBlockNotSimple, id, std::move(what));
}

Result<BlockLayoutPlan> plan_block_layout(const Program& program, BlockId id,
                                          const std::string& text) {
  BlockLayoutPlan plan;
  const Flow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  plan.leaf_ = flow[place];
  const Block& block = *plan.leaf_.block;
  const std::string nest_fault = plain_nest_fault(program, plan.leaf_);
  if (!nest_fault.empty()) return unfit(id, "stand in a plain nest, but " + nest_fault);
  IrBuilder b(program);
  const std::string fault = order_fault(b, block);
  if (!fault.empty()) return error(Diag::kBlockOrderFixed, id, fault);
  PRUNERC_TRY(plan.map_, IndexMap::parse(text));
  std::vector<int64_t> domain;
  for (const IterVar& iter : block.iters) domain.push_back(*constant(iter.extent));
  PRUNERC_TRY(plan.layout_, make_layout(plan.map_, domain));
  if (plan.layout_.pads || plan.layout_.whole != domain) {
    return unfit(id, "be mapped onto a whole box");
  }
  for (int o = 0; o < plan.map_.num_outputs(); ++o) {
    bool reduce = false, spatial = false;
    for (std::size_t i = 0; i < domain.size(); ++i) {
      if (domain[i] == 1 || !plan.map_.uses(o, static_cast<int>(i))) continue;
      const bool is_spatial = block.iters[i].kind == IterKind::kSpatial;
      spatial |= is_spatial;
      reduce |= !is_spatial;
    }
    if (reduce && spatial) return unfit(id, "keep spatial and reduction variables apart");
    plan.kinds_.push_back(reduce ? IterKind::kReduce : IterKind::kSpatial);
  }
  if (plan.leaf_.loops.empty()) {
    PRUNERC_TRY(plan.site_, find_block(program, id));
  } else {
    PRUNERC_TRY(plan.site_, find_loop(program, plan.leaf_.loops[0]->id));
  }
  return plan;
}

Applied apply_block_layout(const Program& program, const BlockLayoutPlan& plan) {
  IrBuilder b(program);
  const Block& block = *plan.leaf().block;
  const std::vector<int64_t>& shape = plan.layout().shape;
  VarRanges ranges;
  std::vector<IterVar> iters;
  std::vector<Expr> vars;
  std::vector<const Var*> loop_vars;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    loop_vars.push_back(b.fresh_var("i" + std::to_string(d)));
    const Var* var = b.fresh_var("v" + std::to_string(d));
    iters.push_back({var, b.int_imm(shape[d]), plan.kinds()[d], loop_vars.back()});
    vars.emplace_back(var);
    // A variable of extent 1 stays in the subscripts, where it says which dimension is whose.
    if (shape[d] != 1) ranges.bind(var, b.int_imm(shape[d]));
  }
  VarMap values;
  const std::vector<Expr> old = invert_layout(b, plan.map(), plan.layout(), vars, ranges);
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
  out.program = b.finish(replace_at(b, plan.site(), nest));
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
