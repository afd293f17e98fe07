// split(@L, [-1, 4]): a loop becomes a nest, outermost first; one factor may be inferred, rounded
// up. Needs: @L serial, without attributes; where the factors reach over the extent, only blocks
// below, which take the guard. After: the old iterations in the old order, each once (DESIGN.md,
// D7).
//   for i in 10 @L { block @B [v: S(10) = i] { T[v] = X[v] } }
// ~>
//   for i_0 in 3 @L0 { for i_1 in 4 @L1 {
//     block @B [v: S(10) = i_0*4 + i_1] where i_0*4 + i_1 < 10 { T[v] = X[v] } } }
#include "ir/arith/linear.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <memory>
#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct SplitArgs {
  LoopId loop;
  std::vector<int64_t> factors;  // with tile parameters: those of the witness
};

struct SplitPlan {
  std::unique_ptr<IrBuilder> builder;  // owns the factors
  Site site;
  std::vector<Expr> factors;
  bool needs_guard = false;
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

// Do the factors cover the loop exactly? With tile parameters: for all their values, by the normal
// form of the product.
bool is_exact(IrBuilder& b, Expr product, Expr extent, const VarRanges& ranges) {
  if (constant(product) && constant(extent)) return constant(product) == constant(extent);
  return prove_equal(product, extent, ranges, {.max_points = 0}) == Proof::kYes ||
         structural_equal(simplify(b, product, ranges), simplify(b, extent, ranges));
}

// ceil(extent / product). Where a covering tiling made the product, that is its outermost tile:
// with x = c*t, ceil(n / x) = ceil(ceil(n / c) / t).
Expr inferred_factor(IrBuilder& b, Expr extent, Expr product, const VarRanges& ranges) {
  const std::optional<int64_t> whole = constant(extent);
  const Linear form = to_linear(b, product, ranges);
  const bool is_monomial = form.constant == 0 && form.terms.size() == 1 && !form.overflow;
  if (whole && is_monomial && ranges.domain() != nullptr) {
    for (const TileVector& tiles : ranges.domain()->tiles) {
      if (tiles.kind != TileKind::kCovering) continue;
      Expr inner = b.int_imm(1);
      for (const ParamId id : tiles.params.subspan(1)) inner = times(b, inner, b.param(id));
      const Linear of_tiles = to_linear(b, inner, ranges);
      Term unit;
      if (of_tiles.terms.size() != 1 || !divide_terms(form.terms[0], of_tiles.terms[0], &unit) ||
          unit.degree != 0) {
        continue;
      }
      if ((*whole + unit.coef - 1) / unit.coef == tiles.extent) return b.param(tiles.params[0]);
    }
  }
  return simplify(b, ceildiv(b, extent, product), ranges);
}

Result<SplitPlan> plan_split(const Program& program, const Call& call) {
  const SplitArgs args{call.loop(0), call.integers(1)};
  SplitPlan plan;
  PRUNERC_TRY(plan.site, find_loop(program, args.loop));
  const Loop& loop = *plan.site.loop();
  PRUNERC_TRY_VOID(check_serial(loop));
  PRUNERC_TRY_VOID(check_extent(loop));
  if (args.factors.empty()) return error(Diag::kSplitNoFactor, args.loop);
  int inferred = -1;
  PRUNERC_TRY_VOID(known_product(args, &inferred));
  plan.builder = std::make_unique<IrBuilder>(program);
  IrBuilder& b = *plan.builder;
  plan.factors = call.sizes(b, 1);
  const VarRanges ranges(program.domain());
  Expr product = b.int_imm(1);
  for (std::size_t i = 0; i < plan.factors.size(); ++i) {
    if (static_cast<int>(i) != inferred) product = times(b, product, plan.factors[i]);
  }
  if (inferred >= 0) {
    const Expr factor = inferred_factor(b, loop.extent, product, ranges);
    plan.factors[static_cast<std::size_t>(inferred)] = factor;
    product = times(b, product, factor);
  }
  const std::optional<int64_t> covered = constant(product);
  const std::optional<int64_t> extent = constant(loop.extent);
  if (covered && extent && *covered < *extent) {
    return error(Diag::kSplitFactorMismatch, *covered, args.loop, *extent);
  }
  plan.needs_guard = !is_exact(b, product, loop.extent, ranges);
  if (plan.needs_guard) PRUNERC_TRY_VOID(check_holds_blocks(loop));
  return plan;
}

Applied apply_split(const Program& program, const SplitPlan& plan) {
  IrBuilder& b = *plan.builder;
  const Loop& loop = *plan.site.loop();
  const std::vector<Expr>& factors = plan.factors;
  std::vector<const Var*> vars;
  std::vector<LoopId> ids;
  for (std::size_t i = 0; i < factors.size(); ++i) {
    vars.push_back(b.fresh_var(std::string(loop.var->name) + "_" + std::to_string(i)));
    ids.push_back(b.fresh_loop_id());
  }
  VarRanges ranges = ranges_at(program, plan.site);
  Expr sum;
  Expr stride = b.int_imm(1);
  for (std::size_t i = factors.size(); i-- > 0;) {
    ranges.bind(vars[i], factors[i]);
    const Expr term = times(b, vars[i], stride);
    sum = sum.defined() ? b.add(term, sum) : term;
    stride = times(b, factors[i], stride);
  }
  const Expr guard = plan.needs_guard ? b.lt(sum, loop.extent) : Expr();
  Stmt nest = rebind(b, loop.body, {{loop.var->id, sum}}, guard, ranges);
  for (std::size_t i = factors.size(); i-- > 0;) {
    nest = make_loop(b, vars[i], factors[i], nest, ids[i]);
  }
  Applied out;
  out.program = b.finish(replace_at(b, plan.site, nest));
  out.outputs.assign(ids.begin(), ids.end());
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kSplit>(const Program& program, const Call& call) {
  PRUNERC_TRY(const SplitPlan plan, plan_split(program, call));
  return apply_split(program, plan);
}

}  // namespace prunerc::schedule
