// fuse(loops), outermost first:
//     for i in M @L0 { for j in N @L1 { S(i, j) } }
//   ~>
//     for f in M*N @L { S(f // N, f % N) }
//
// Requires: each loop is the only statement of the one before; all serial, without attributes, of
// constant extent. Legal because: f -> (f // N, f % N) is a bijection that keeps the lexicographic
// order; DESIGN.md, D7. Cost: O(loops and bindings below).
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

constexpr int64_t kMaxExtent = int64_t{1} << 40;

struct FuseArgs {
  std::vector<LoopId> loops;
};

class FusePlan {
 public:
  const Site& site() const { return site_; }
  const std::vector<const Loop*>& loops() const { return loops_; }

 private:
  friend Result<FusePlan> plan_fuse(const Program&, const FuseArgs&);
  Site site_;
  std::vector<const Loop*> loops_;
};

Result<FusePlan> plan_fuse(const Program& program, const FuseArgs& args) {
  if (args.loops.empty()) return error(Diag::kLoopListEmpty, std::string("fuse"));
  FusePlan plan;
  PRUNERC_TRY(plan.site_, find_loop(program, args.loops[0]));
  const Loop* loop = plan.site_.loop();
  int64_t product = 1;
  for (std::size_t i = 0; i < args.loops.size(); ++i) {
    if (i > 0) {
      PRUNERC_TRY_VOID(find_loop(program, args.loops[i]));
      const Loop* inner = loop->body.as<Loop>();
      if (inner == nullptr || inner->id != args.loops[i]) {
        return error(Diag::kLoopsNotNested, args.loops[i], loop->id);
      }
      loop = inner;
    }
    PRUNERC_TRY_VOID(check_plain(*loop));
    PRUNERC_TRY_VOID(check_extent(*loop));
    const int64_t extent = constant(loop->extent).value_or(1);
    if (extent > kMaxExtent / product) {
      return error(Diag::kFuseExtentRange, static_cast<int64_t>(args.loops.size()), args.loops[0]);
    }
    product *= extent;
    plan.loops_.push_back(loop);
  }
  return plan;
}

Applied apply_fuse(const Program& program, const FusePlan& plan) {
  IrBuilder b(program);
  std::string name;
  // strides[i]: iterations of the loops inside the i-th.
  std::vector<Expr> strides(plan.loops().size());
  Expr product = b.int_imm(1);
  for (std::size_t i = plan.loops().size(); i-- > 0;) {
    strides[i] = product;
    product = times(b, plan.loops()[i]->extent, product);
  }
  for (std::size_t i = 0; i < plan.loops().size(); ++i) {
    name += (i > 0 ? "_" : "") + std::string(plan.loops()[i]->var->name);
  }
  const Var* fused = b.fresh_var(name + (plan.loops().size() > 1 ? "_f" : ""));
  const LoopId id = b.fresh_loop_id();
  VarMap map;
  bool outermost = true;
  for (std::size_t i = 0; i < plan.loops().size(); ++i) {
    const Expr extent = plan.loops()[i]->extent;
    const Expr digit = is_one(strides[i]) ? Expr(fused) : b.floordiv(fused, strides[i]);
    const Expr wrapped = outermost ? digit : b.floormod(digit, extent);
    map[plan.loops()[i]->var->id] = is_one(extent) ? b.int_imm(0) : wrapped;
    outermost = outermost && is_one(extent);
  }
  // The fused loop takes the place of the outermost one; its variable replaces all of theirs.
  VarRanges ranges = ranges_at(program, plan.site());
  ranges.bind(fused, product);
  const Stmt body = rebind(b, plan.loops().back()->body, map, {}, ranges);
  Applied out;
  out.program = b.finish(replace_at(b, plan.site(), make_loop(b, fused, product, body, id)));
  out.outputs = {id};
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kFuse>(const Program& program, const Call& call) {
  PRUNERC_TRY(const FusePlan plan, plan_fuse(program, {call.loops(0)}));
  return apply_fuse(program, plan);
}

}  // namespace prunerc::schedule
