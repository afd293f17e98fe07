// fuse(loops), outermost first:
//     for i in M @L0 { for j in N @L1 { S(i, j) } }
//   ~>
//     for f in M*N @L { S(f // N, f % N) }
//
// Requires: each loop is the only statement of the one before; all serial, without attributes, of
// constant extent. Legal because: f -> (f // N, f % N) is a bijection that keeps the lexicographic
// order; DESIGN.md, D7. Cost: O(loops and bindings below).
#include "schedule/primitive.h"
#include "schedule/primitive/site.h"

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
  const std::vector<int64_t>& extents() const { return extents_; }

 private:
  friend Result<FusePlan> plan_fuse(const Program&, const FuseArgs&);
  Site site_;
  std::vector<const Loop*> loops_;
  std::vector<int64_t> extents_;
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
    PRUNERC_TRY(const int64_t extent, constant_extent(*loop));
    if (extent > kMaxExtent / product) {
      return error(Diag::kFuseExtentRange, static_cast<int64_t>(args.loops.size()), args.loops[0]);
    }
    product *= extent;
    plan.loops_.push_back(loop);
    plan.extents_.push_back(extent);
  }
  return plan;
}

Applied apply_fuse(const Program& program, const FusePlan& plan) {
  IrBuilder b(program);
  std::string name;
  int64_t product = 1;
  for (std::size_t i = 0; i < plan.loops().size(); ++i) {
    name += (i > 0 ? "_" : "") + std::string(plan.loops()[i]->var->name);
    product *= plan.extents()[i];
  }
  const Var* fused = b.fresh_var(name + (plan.loops().size() > 1 ? "_f" : ""));
  const LoopId id = b.fresh_loop_id();
  VarMap map;
  int64_t stride = product;
  for (std::size_t i = 0; i < plan.loops().size(); ++i) {
    const int64_t extent = plan.extents()[i];
    const bool outermost = stride == product;
    stride /= extent;
    const Expr digit = stride == 1 ? Expr(fused) : b.floordiv(fused, b.int_imm(stride));
    const Expr wrapped = outermost ? digit : b.floormod(digit, b.int_imm(extent));
    map[plan.loops()[i]->var->id] = extent == 1 ? b.int_imm(0) : wrapped;
  }
  // The fused loop takes the place of the outermost one; its variable replaces all of theirs.
  VarRanges ranges = ranges_at(program, plan.site());
  ranges.bind(fused, b.int_imm(product));
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
