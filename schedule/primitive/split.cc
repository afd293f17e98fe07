// split(loop, factors):
//     for i in N @L { S(i) }
//   ~>
//     for i_0 in f0 @L0 { for i_1 in f1 @L1 { S(i_0*f1 + i_1)  where i_0*f1 + i_1 < N, unless f0*f1
//     = N } }
//
// Requires: L serial, without attributes; N and the factors constant; at most one factor inferred
// (-1, rounded up); a guarded split needs only blocks below, which take the guard. Legal because:
// (i_0, i_1) -> i_0*f1 + i_1 is injective and keeps the order on the guarded domain; DESIGN.md, D7.
// Cost: O(loops and bindings below L).
#include "schedule/primitive.h"
#include "schedule/primitive/site.h"

#include <limits>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

// Keeps every index of the padded domain far from overflow.
constexpr int64_t kMaxExtent = int64_t{1} << 40;

struct SplitArgs {
  LoopId loop;
  std::vector<int64_t> factors;
};

class SplitPlan {
 public:
  const Site& site() const { return site_; }
  const std::vector<int64_t>& factors() const { return factors_; }
  int64_t extent() const { return extent_; }
  bool needs_guard() const { return needs_guard_; }

 private:
  friend Result<SplitPlan> plan_split(const Program&, const SplitArgs&);
  Site site_;
  std::vector<int64_t> factors_;
  int64_t extent_ = 0;
  bool needs_guard_ = false;
};

// Product of the given factors; the position of the inferred one (or -1) goes to `inferred`.
Result<int64_t> known_product(const SplitArgs& args, int* inferred) {
  int64_t product = 1;
  *inferred = -1;
  for (std::size_t i = 0; i < args.factors.size(); ++i) {
    const int64_t factor = args.factors[i];
    if (factor == -1) {
      if (*inferred >= 0) return error(Diag::kSplitInferredTwice, args.loop);
      *inferred = static_cast<int>(i);
      continue;
    }
    if (factor < 1 || factor > kMaxExtent / product) {
      return error(Diag::kSplitFactorRange, factor, args.loop, kMaxExtent / product);
    }
    product *= factor;
  }
  return product;
}

Result<SplitPlan> plan_split(const Program& program, const SplitArgs& args) {
  SplitPlan plan;
  PRUNERC_TRY(plan.site_, find_loop(program, args.loop));
  const Loop& loop = *plan.site_.loop();
  PRUNERC_TRY_VOID(check_plain(loop));
  PRUNERC_TRY(plan.extent_, constant_extent(loop));
  if (args.factors.empty()) return error(Diag::kSplitNoFactor, args.loop);
  int inferred = -1;
  PRUNERC_TRY(int64_t product, known_product(args, &inferred));
  plan.factors_ = args.factors;
  if (inferred >= 0) {
    const int64_t factor = (plan.extent_ + product - 1) / product;
    plan.factors_[static_cast<std::size_t>(inferred)] = factor;
    product *= factor;
  }
  if (product < plan.extent_) {
    return error(Diag::kSplitFactorMismatch, product, args.loop, plan.extent_);
  }
  plan.needs_guard_ = product > plan.extent_;
  if (plan.needs_guard_) PRUNERC_TRY_VOID(check_holds_blocks(loop));
  return plan;
}

Applied apply_split(const Program& program, const SplitPlan& plan) {
  IrBuilder b(program);
  const Loop& loop = *plan.site().loop();
  const std::vector<int64_t>& factors = plan.factors();
  std::vector<const Var*> vars;
  std::vector<LoopId> ids;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    vars.push_back(b.fresh_var(std::string(loop.var->name) + "_" + std::to_string(i)));
    ids.push_back(b.fresh_loop_id());
  }
  VarRanges ranges = ranges_at(program, plan.site());
  Expr sum;
  int64_t stride = 1;
  for (std::size_t i = factors.size(); i-- > 0;) {
    ranges.bind(vars[i], b.int_imm(factors[i]));
    const Expr term = stride == 1 ? Expr(vars[i]) : b.mul(vars[i], b.int_imm(stride));
    sum = sum.defined() ? b.add(term, sum) : term;
    stride *= factors[i];
  }
  const Expr guard = plan.needs_guard() ? b.lt(sum, b.int_imm(plan.extent())) : Expr();
  Stmt nest = rebind(b, loop.body, {{loop.var->id, sum}}, guard, ranges);
  for (std::size_t i = factors.size(); i-- > 0;) {
    nest = make_loop(b, vars[i], factors[i], nest, ids[i]);
  }
  Applied out;
  out.program = b.finish(replace_at(b, plan.site(), nest));
  out.outputs.assign(ids.begin(), ids.end());
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kSplit>(const Program& program, const Call& call) {
  PRUNERC_TRY(const SplitPlan plan, plan_split(program, {call.loop(0), call.integers(1)}));
  return apply_split(program, plan);
}

}  // namespace prunerc::schedule
