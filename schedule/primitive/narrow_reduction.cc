// narrow_reduction(@B, 1): a reduction variable that a congruence in the update's condition pins
// takes those values alone. Needs: a canonical nest; an update select((e - k) % s == c, x,
// identity), k's factor prime to s. After: the same updates in the same order; where s does not
// divide the extent, a bound stands in the condition instead (DESIGN.md, D38).
//   for k in 4 { block @B [v: S(8) = i, u: R(4) = k] { T[v] += select((v - u) % 2 == 0, F[u], 0)} }
// ~>
//   for k in 2 { block @B [v: S(8) = i, u: R(2) = k] { T[v] += F[u*2 + v % 2] } }
#include "ir/analysis/accumulator.h"
#include "ir/analysis/region.h"
#include "ir/arith/linear.h"
#include "ir/arith/loop_index.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "schedule/legality/canonical_nest.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

/// k = residue modulo period, for the variable k.
struct Congruence {
  int64_t period = 1;
  Linear residue;  // not reduced
};

struct NarrowPlan {
  LeafBlock leaf;
  std::size_t iter = 0;
  int64_t extent = 1;
  std::unique_ptr<IrBuilder> builder;  // owns the congruence's atoms
  Reducer reducer;
  Congruence congruence;
  std::vector<Expr> others;  // conjuncts beside the congruence
};

Error unfit(BlockId id, std::string what) {
  return error(Diag::kBlockNotSimple, id, std::move(what));
}

// The inverse of a modulo the period, next to 0 on a's side; nullopt if they have a common factor.
std::optional<int64_t> inverse_of(int64_t a, int64_t period) {
  for (int64_t x = 1; x < period; ++x) {
    if (floor_mod(a * x, period) == 1) return a < 0 ? x - period : x;
  }
  return std::nullopt;
}

/// Periods beyond this are no kernel's stride, and products with them stay far from overflow.
constexpr int64_t kMaxPeriod = 1024;

// Solves (coef*k + rest) % period == value for k.
std::optional<Congruence> congruence_on(IrBuilder& b, Expr condition, VarId var,
                                        const VarRanges& ranges) {
  const Eq* equal = condition.as<Eq>();
  const FloorMod* mod = equal != nullptr ? equal->lhs.as<FloorMod>() : nullptr;
  if (mod == nullptr || has_data(mod->lhs)) return std::nullopt;
  const std::optional<int64_t> value = constant(equal->rhs), period = constant(mod->rhs);
  if (!value || !period || *period < 2 || *period > kMaxPeriod) return std::nullopt;
  if (*value < 0 || *value >= *period) return std::nullopt;
  Linear rest = to_linear(b, mod->lhs, ranges);
  if (rest.overflow || rest.has_data) return std::nullopt;
  int64_t coef = 0;
  for (std::size_t i = 0; i < rest.terms.size(); ++i) {
    const Term& term = rest.terms[i];
    const Var* own = term.degree == 1 ? term.atoms[0].as<Var>() : nullptr;
    if (own == nullptr || own->id != var) continue;
    coef = term.coef;
    rest.terms.erase(rest.terms.begin() + static_cast<std::ptrdiff_t>(i));
    break;
  }
  if (coef == 0 || mentions(to_expr(b, rest), var)) return std::nullopt;
  const std::optional<int64_t> inverse =
      inverse_of(coef < 0 ? -floor_mod(-coef, *period) : floor_mod(coef, *period), *period);
  if (!inverse) return std::nullopt;
  Congruence out{*period, (Linear::of(*value) - rest) * *inverse};
  return out.residue.overflow ? std::nullopt : std::optional(std::move(out));
}

Result<NarrowPlan> plan_narrowing(const Program& program, BlockId id, int64_t position) {
  NarrowPlan plan;
  const Dataflow flow(program);
  PRUNERC_TRY(const std::size_t place, flow.find(id));
  plan.leaf = flow[place];
  const Block& block = *plan.leaf.block;
  const std::string fault = canonical_nest_fault(program, plan.leaf);
  if (!fault.empty()) return unfit(id, "stand in a plain nest, but " + fault);
  if (position < 0 || position >= static_cast<int64_t>(block.iters.size())) {
    return unfit(id, "have a variable " + std::to_string(position));
  }
  plan.iter = static_cast<std::size_t>(position);
  const IterVar& iter = block.iters[plan.iter];
  const std::string name = "'" + std::string(iter.var->name) + "'";
  if (iter.kind != IterKind::kReduce) return unfit(id, "reduce over " + name);
  plan.extent = *constant(iter.extent);
  const std::optional<Reducer> reducer = match_reducer(block);
  if (!reducer) return error(Diag::kReducerUnknown, id);
  plan.reducer = *reducer;
  const Select* update = reducer->update.as<Select>();
  if (update == nullptr || !is_identity(reducer->op, update->on_false)) {
    return unfit(id, "update by a select between a value and one that changes nothing");
  }
  plan.builder = std::make_unique<IrBuilder>(program);
  const VarRanges ranges = ranges_of(block);
  bool found = false;
  for (Expr conjunct : conjuncts(update->condition)) {
    std::optional<Congruence> solved;
    if (!found) solved = congruence_on(*plan.builder, conjunct, iter.var->id, ranges);
    if (solved) {
      plan.congruence = *std::move(solved);
      found = true;
    } else {
      plan.others.push_back(conjunct);
    }
  }
  if (!found) return unfit(id, "have a condition x % s == c that determines " + name);
  return plan;
}

class Narrowing {
 public:
  Narrowing(const Program& program, const NarrowPlan& plan)
      : program_(program), plan_(plan), b_(*plan.builder), block_(*plan.leaf.block) {}

  Applied run() {
    const IterVar& old = block_.iters[plan_.iter];
    const int64_t period = plan_.congruence.period;
    const int64_t count = (plan_.extent + period - 1) / period;
    const Var* loop_var = b_.fresh_var(old.binding.as<Var>()->name);
    const Var* var = b_.fresh_var(old.var->name);
    std::vector<IterVar> iters(block_.iters.begin(), block_.iters.end());
    iters[plan_.iter] = {var, b_.int_imm(count), old.kind, loop_var};
    for (const IterVar& iter : iters) ranges_.bind(iter.var, iter.extent);
    const Expr steps = times(b_, Expr(var), b_.int_imm(period));
    const Expr residue = to_expr(b_, plan_.congruence.residue);
    at_ = b_.add(steps, b_.floormod(residue, b_.int_imm(period)));
    // The same without a remainder, for quotients by the period.
    const Expr whole = times(b_, b_.floordiv(residue, b_.int_imm(period)), b_.int_imm(period));
    at_whole_ = b_.sub(b_.add(steps, residue), whole);
    Block changed = block_;
    changed.iters = iters;
    const Expr update = narrowed_update();
    changed.body = replace_update(update);
    rebuild_accesses(b_, changed);
    Applied out;
    out.outputs = {b_.fresh_loop_id()};
    Stmt nest = b_.block(changed);
    for (std::size_t i = plan_.leaf.loops.size(); i-- > 0;) {
      const Loop& loop = *plan_.leaf.loops[i];
      const bool own = loop.var->id == old.binding.as<Var>()->id;
      nest = own ? make_loop(b_, loop_var, count, nest, std::get<LoopId>(out.outputs[0]))
                 : make_loop(b_, loop.var, loop.extent, nest, loop.id);
    }
    Site site;
    if (program_.root().as<Seq>() != nullptr) site.path.push_back(program_.root());
    site.path.push_back(top_of(plan_.leaf));
    out.program = b_.finish(replace_at(b_, site, nest));
    return out;
  }

 private:
  Expr moved(Expr e) { return simplify(b_, place(e), ranges_); }

  // The variable's new values; in quotients those of which the period's multiples come out.
  Expr place(Expr e) {
    const VarId old = block_.iters[plan_.iter].var->id;
    if (!mentions(e, old)) return e;
    if (e.kind() == ExprKind::kFloorDiv) {
      const Expr whole = simplify(b_, substitute(b_, e, {{old, at_whole_}}), ranges_);
      const Expr usual = simplify(b_, substitute(b_, e, {{old, at_}}), ranges_);
      return expr_size(whole) <= expr_size(usual) ? whole : usual;
    }
    if (e.as<Var>() != nullptr) return at_;
    return map_children(b_, e, [this](Expr child) { return place(child); });
  }

  Expr narrowed_update() {
    const Select& old = *plan_.reducer.update.as<Select>();
    Expr condition;
    const Expr end = b_.int_imm(plan_.extent);
    if (prove_less(at_, end, ranges_) != Proof::kYes) {
      condition = simplify(b_, b_.lt(at_, end), ranges_);
    }
    for (Expr other : plan_.others) {
      const Expr next = moved(other);
      if (constant(next) != 1) condition = conjoin(b_, condition, next);
    }
    const Expr value = moved(old.on_true);
    return condition.defined() ? b_.select(condition, value, old.on_false) : value;
  }

  Stmt replace_update(Expr update) {
    const Store& store = *plan_.reducer.store;
    const Expr held = b_.load(store.buffer, store.indices);
    return b_.store(store.buffer, store.indices, b_.binary(plan_.reducer.op, held, update));
  }

  const Program& program_;
  const NarrowPlan& plan_;
  IrBuilder& b_;
  const Block& block_;
  VarRanges ranges_;
  Expr at_, at_whole_;  // what the old variable is in terms of the new one
};

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kNarrowReduction>(const Program& program, const Call& call) {
  PRUNERC_TRY(const NarrowPlan plan, plan_narrowing(program, call.block(0), call.integer(1)));
  return Narrowing(program, plan).run();
}

}  // namespace prunerc::schedule
