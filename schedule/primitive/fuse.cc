// fuse([@L0, @L1]): a chain of loops, outermost first, becomes one loop.
// Needs: each loop is the only statement of the one before; all serial, without attributes.
// After: the old iterations in the old order, each once (DESIGN.md, D7).
//   for i in 4 @L0 { for j in 8 @L1 { block @B [v: S(4) = i, w: S(8) = j] { T[v, w] = X[v, w] } } }
// ~>
//   for f in 32 @L { block @B [v: S(4) = f // 8, w: S(8) = f % 8] { T[v, w] = X[v, w] } }
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct FusePlan {
  Site site;
  std::vector<const Loop*> loops;
};

Result<FusePlan> plan_fuse(const Program& program, const std::vector<LoopId>& ids) {
  if (ids.empty()) return error(Diag::kLoopListEmpty, std::string("fuse"));
  FusePlan plan;
  PRUNERC_TRY(plan.site, find_loop(program, ids[0]));
  const Loop* loop = plan.site.loop();
  int64_t product = 1;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (i > 0) {
      PRUNERC_TRY_VOID(find_loop(program, ids[i]));
      const Loop* inner = loop->body.as<Loop>();
      if (inner == nullptr || inner->id != ids[i]) {
        return error(Diag::kLoopsNotNested, ids[i], loop->id);
      }
      loop = inner;
    }
    PRUNERC_TRY_VOID(check_serial(*loop));
    PRUNERC_TRY_VOID(check_extent(*loop));
    const int64_t extent = constant(loop->extent).value_or(1);
    if (extent > kMaxExtent / product) {
      return error(Diag::kFuseExtentRange, static_cast<int64_t>(ids.size()), ids[0]);
    }
    product *= extent;
    plan.loops.push_back(loop);
  }
  return plan;
}

Applied apply_fuse(const Program& program, const FusePlan& plan) {
  IrBuilder b(program);
  std::string name;
  // strides[i]: iterations of the loops inside the i-th.
  std::vector<Expr> strides(plan.loops.size());
  Expr product = b.int_imm(1);
  for (std::size_t i = plan.loops.size(); i-- > 0;) {
    strides[i] = product;
    product = times(b, plan.loops[i]->extent, product);
  }
  for (std::size_t i = 0; i < plan.loops.size(); ++i) {
    name += (i > 0 ? "_" : "") + std::string(plan.loops[i]->var->name);
  }
  const Var* fused = b.fresh_var(name + (plan.loops.size() > 1 ? "_f" : ""));
  const LoopId id = b.fresh_loop_id();
  VarMap map;
  bool outermost = true;
  for (std::size_t i = 0; i < plan.loops.size(); ++i) {
    const Expr extent = plan.loops[i]->extent;
    const Expr digit = is_one(strides[i]) ? Expr(fused) : b.floordiv(fused, strides[i]);
    const Expr wrapped = outermost ? digit : b.floormod(digit, extent);
    map[plan.loops[i]->var->id] = is_one(extent) ? b.int_imm(0) : wrapped;
    outermost = outermost && is_one(extent);
  }
  // The fused loop takes the place of the outermost one; its variable replaces all of theirs.
  VarRanges ranges = ranges_at(program, plan.site);
  ranges.bind(fused, product);
  const Stmt body = rebind(b, plan.loops.back()->body, map, {}, ranges);
  return {b.finish(replace_at(b, plan.site, make_loop(b, fused, product, body, id))), {id}, {}};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kFuse>(const Program& program, const Call& call) {
  PRUNERC_TRY(const FusePlan plan, plan_fuse(program, call.loops(0)));
  return apply_fuse(program, plan);
}

}  // namespace prunerc::schedule
