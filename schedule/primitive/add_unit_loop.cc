// add_unit_loop(loop), add_unit_loop_block(B):        reorder_block_iter_var(B, order):
//     B: ..                                               B: [vi, vj, vk]
//   ~>                                                  ~>  reorder_block_iter_var(@B, [2, 0, 1])
//     for u in 1 @L { B: .. }                             B: [vk, vi, vj]
//
// Requires: order names each position of B's variables once.
// Legal because: a loop of one iteration changes nothing; nor does the order in which a block
// declares its variables.
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <string>
#include <vector>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

Applied wrap(const Program& program, const Site& site) {
  IrBuilder b(program);
  Applied out;
  const LoopId id = b.fresh_loop_id();
  out.outputs.emplace_back(id);
  const Stmt loop = make_loop(b, b.fresh_var("u"), 1, site.path.back(), id);
  out.program = b.finish(replace_at(b, site, loop));
  return out;
}

class IterOrderPlan {
 public:
  const Site& site() const { return site_; }
  const std::vector<IterVar>& iters() const { return iters_; }

 private:
  friend Result<IterOrderPlan> plan_iter_order(const Program&, BlockId,
                                               const std::vector<int64_t>&);
  Site site_;
  std::vector<IterVar> iters_;
};

Result<IterOrderPlan> plan_iter_order(const Program& program, BlockId id,
                                      const std::vector<int64_t>& order) {
  IterOrderPlan plan;
  PRUNERC_TRY(plan.site_, find_block(program, id));
  const std::span<const IterVar> iters = plan.site_.block()->iters;
  const int64_t n = static_cast<int64_t>(iters.size());
  if (static_cast<int64_t>(order.size()) != n) {
    return error(Diag::kPermutationInvalid, n, static_cast<int64_t>(order.size()));
  }
  std::vector<bool> seen(iters.size(), false);
  for (const int64_t position : order) {
    if (position < 0 || position >= n || seen[static_cast<std::size_t>(position)]) {
      return error(Diag::kPermutationInvalid, n, position);
    }
    seen[static_cast<std::size_t>(position)] = true;
    plan.iters_.push_back(iters[static_cast<std::size_t>(position)]);
  }
  return plan;
}

Applied apply_iter_order(const Program& program, const IterOrderPlan& plan) {
  IrBuilder b(program);
  Block copy = *plan.site().block();
  copy.iters = plan.iters();
  Applied out;
  out.program = b.finish(replace_at(b, plan.site(), b.block(copy)));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kAddUnitLoop>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_loop(program, call.loop(0)));
  return wrap(program, site);
}

template <>
Result<Applied> run<PrimitiveKind::kAddUnitLoopBlock>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_block(program, call.block(0)));
  return wrap(program, site);
}

template <>
Result<Applied> run<PrimitiveKind::kReorderBlockIterVar>(const Program& program, const Call& call) {
  PRUNERC_TRY(const IterOrderPlan plan, plan_iter_order(program, call.block(0), call.integers(1)));
  return apply_iter_order(program, plan);
}

}  // namespace prunerc::schedule
