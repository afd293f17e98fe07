// online(@M): a maximum, and sums of exp(x - maximum)*y over its axis, become one running tuple.
// Needs: @M the maximum of x (f32, f64) along one axis; reductions that read it, one at least, each
// such a sum, perhaps over what does not move along the axis; all as they came; others behind.
// After: sums so far are rescaled where the maximum grows; blocks behind finish them.
//   .. block @M [c: R(8)] { M[0] = max(M[0], X[c]) }
//   .. block @S [c: R(8)] { S[0] = S[0] + exp(X[c] - M[0])*Y[c] }
// ~>
//   .. block [c: R(8)] { f[0] = exp(M[0] - max(M[0], X[c]))  g.. T[0] = T[0]*f[0] + g[0]*Y[c] .. }
#include "ir/analysis/region.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "schedule/legality/axis_reduction.h"
#include "schedule/legality/canonical_nest.h"
#include "schedule/legality/elementwise.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/nest.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

// T = T + exp(x - M)*above / below / divisors.
struct WeightedSum {
  AxisReduction pass;
  VarMap to_max;                    // its variables, as those of the maximum
  std::vector<const IterVar*> own;  // of its elements alone
  std::vector<Expr> above, below;   // other factors of a term
  std::vector<Expr> divisors;       // of all terms alike
};

struct OnlinePlan {
  AxisReduction max;
  std::vector<WeightedSum> sums;  // in the order of execution
};

bool reads_any(const std::vector<Expr>& exprs, BufferId buffer) {
  return std::any_of(exprs.begin(), exprs.end(), [&](Expr e) { return loads_from(e, buffer); });
}

class OnlinePlanner {
 public:
  explicit OnlinePlanner(const Program& program) : flow_(program), b_(program) {}

  Result<OnlinePlan> plan(BlockId id) {
    PRUNERC_TRY(const std::size_t place, flow_.find(id));
    PRUNERC_TRY(plan_.max, read_axis_reduction(b_, flow_, place, ExprKind::kMax));
    const AxisReduction& max = plan_.max;
    for (const std::size_t reader : flow_.readers(max_buffer())) {
      if (reader == place || !has_reduce_iters(*flow_[reader].block)) continue;
      PRUNERC_TRY(WeightedSum sum, read_sum(reader));
      plan_.sums.push_back(std::move(sum));
    }
    if (plan_.sums.empty()) {
      return not_simple(*max.block, "be subtracted in the exponents of a sum");
    }
    std::sort(plan_.sums.begin(), plan_.sums.end(),
              [](const auto& x, const auto& y) { return x.pass.place < y.pass.place; });
    PRUNERC_TRY_VOID(check_divisors());
    PRUNERC_TRY_VOID(check_readers());
    return std::move(plan_);
  }

 private:
  BufferId max_buffer() const { return plan_.max.target(); }

  // Variables by which both go over the same elements.
  Result<void> match_vars(const Load& load, WeightedSum* sum) const {
    const AxisReduction &max = plan_.max, &pass = sum->pass;
    const auto refuse = [&] {
      return not_simple(*pass.block, "read the maximum of its own element along the same axis");
    };
    const auto note = [&](const IterVar& mine, const IterVar& its) {
      sum->to_max[mine.var->id] = Expr(its.var);
      return constant(mine.extent) == constant(its.extent);
    };
    if (!note(*pass.axis, *max.axis)) return refuse();
    for (const IterVar& its : max.block->iters) {
      if (its.kind != IterKind::kSpatial) continue;
      const std::span<const Expr> stored = max.reducer.store->indices;
      const auto at = std::find_if(stored.begin(), stored.end(),
                                   [&](Expr index) { return is_var(index, its); });
      const Expr index = load.indices[static_cast<std::size_t>(at - stored.begin())];
      const auto mine = std::find_if(pass.block->iters.begin(), pass.block->iters.end(),
                                     [&](const IterVar& iter) { return is_var(index, iter); });
      const bool is_new = mine != pass.block->iters.end() && mine->kind == IterKind::kSpatial &&
                          sum->to_max.count(mine->var->id) == 0;
      if (!is_new || !note(*mine, its)) return refuse();
    }
    for (const IterVar& iter : pass.block->iters) {
      if (sum->to_max.count(iter.var->id) == 0) sum->own.push_back(&iter);
    }
    return {};
  }

  Result<WeightedSum> read_sum(std::size_t reader) {
    WeightedSum sum;
    PRUNERC_TRY(sum.pass, read_axis_reduction(b_, flow_, reader, ExprKind::kAdd));
    const Block& block = *sum.pass.block;
    const BufferId max = max_buffer();
    Factors factors = factors_of(sum.pass.reducer.update);
    const auto power = std::find_if(factors.above.begin(), factors.above.end(), [&](Expr e) {
      const Load* load = exponent_of(e).subtracted;
      return load != nullptr && load->buffer == max;
    });
    if (power == factors.above.end()) {
      return not_simple(block, "add up products with exp(x - maximum)");
    }
    const Exponent exponent = exponent_of(*power);
    PRUNERC_TRY_VOID(match_vars(*exponent.subtracted, &sum));
    if (!structural_equal(substitute(b_, exponent.x, sum.to_max), plan_.max.reducer.update)) {
      return not_simple(block, "have in its exponents what the maximum is of");
    }
    factors.above.erase(power);
    sum.above = factors.above;
    for (Expr factor : factors.below) {
      const bool moves = mentions(factor, sum.pass.axis->var->id);
      (moves ? sum.below : sum.divisors).push_back(factor);
    }
    const bool is_read_again = reads_any(sum.above, max) || reads_any(sum.below, max);
    if (is_read_again || reads_any(sum.divisors, max)) {
      return not_simple(block, "read the maximum in one exponent only");
    }
    return sum;
  }

  // What is made in the pass is there behind it alone: only divisors may be sums of it, earlier ones
  // (sources are final where they are read).
  Result<void> check_divisors() const {
    for (const WeightedSum& one : plan_.sums) {
      for (const WeightedSum& other : plan_.sums) {
        const BufferId made = other.pass.reducer.store->buffer;
        if (reads_any(one.above, made) || reads_any(one.below, made)) {
          return not_simple(*one.pass.block, "be divided at most by what the pass makes");
        }
      }
    }
    return {};
  }

  // All stand where the last sum is.
  Result<void> check_readers() const {
    const std::size_t last = plan_.sums.back().pass.place;
    const auto is_part = [&](std::size_t place) {
      return place == plan_.max.place ||
             std::any_of(plan_.sums.begin(), plan_.sums.end(),
                         [&](const WeightedSum& sum) { return sum.pass.place == place; });
    };
    std::vector<BufferId> made = {max_buffer()};
    for (const WeightedSum& sum : plan_.sums) made.push_back(sum.pass.reducer.store->buffer);
    for (const BufferId buffer : made) {
      for (const std::size_t reader : flow_.readers(buffer)) {
        if (reader > last || is_part(reader)) continue;
        return not_simple(*flow_[reader].block, "read what is made in one pass behind it");
      }
    }
    return {};
  }

  Dataflow flow_;
  IrBuilder b_;
  OnlinePlan plan_;
};

// Makes the tuple's block and those behind it.
class OnlineRewrite {
 public:
  OnlineRewrite(const Program& program, const OnlinePlan& plan)
      : program_(program), flow_(program), b_(program), plan_(plan) {}

  Applied run() {
    std::vector<Stmt> made = {running_tuple()};
    for (std::size_t i = 0; i < plan_.sums.size(); ++i) made.push_back(finish(i));
    std::vector<Stmt> gone = {top_of(flow_[plan_.max.place])};
    for (const WeightedSum& sum : plan_.sums) gone.push_back(top_of(flow_[sum.pass.place]));
    std::vector<Stmt> all;
    for (Stmt s : program_.root().as<Seq>()->stmts) {
      const bool goes =
          std::any_of(gone.begin(), gone.end(), [&](Stmt other) { return s.is(other); });
      if (s.is(gone.back())) all.insert(all.end(), made.begin(), made.end());
      if (!goes) all.push_back(s);
    }
    applied_.program = b_.finish(b_.seq(all));
    return std::move(applied_);
  }

 private:
  DType dtype() const { return plan_.max.reducer.update.dtype(); }

  BufferId add_buffer(BufferId like, const char* suffix, Scope scope) {
    const Buffer buffer = b_.buffer(like);
    return b_.add_buffer(std::string(buffer.name) + suffix, buffer.dtype, buffer.shape, scope,
                         BufferRole::kIntermediate);
  }

  Expr exp_of(Expr e) { return b_.call(Intrinsic::kExp, {&e, 1}); }

  // exp(so_far - now), 1 where they are equal: infinities, too, as of what is all masked so far.
  Expr rescaling(Expr so_far, Expr now) {
    return b_.select(b_.eq(so_far, now), b_.constant(1, dtype()), exp_of(b_.sub(so_far, now)));
  }

  // exp(x - now), nothing of what is masked: `now` may be -inf as well.
  Expr weight(Expr x, Expr now) {
    const Expr none = identity_of(b_, ExprKind::kMax, dtype());
    return b_.select(b_.eq(x, none), b_.constant(0, dtype()), exp_of(b_.sub(x, now)));
  }

  Stmt running_tuple() {
    const AxisReduction& max = plan_.max;
    Block block{};
    block.id = b_.fresh_block_id();
    block.name = max.block->name;
    std::vector<IterVar> iters;
    std::vector<const Var*> vars;
    std::vector<LoopId> ids;
    VarMap fresh;  // of the maximum's variables
    for (const IterVar& iter : max.block->iters) {
      vars.push_back(b_.fresh_var(flow_[max.place].loops[iters.size()]->var->name));
      ids.push_back(b_.fresh_loop_id());
      const Var* var = b_.fresh_var(iter.var->name);
      fresh[iter.var->id] = Expr(var);
      iters.push_back({var, iter.extent, iter.kind, Expr(vars.back())});
    }
    block.iters = b_.copy(iters);
    fill(fresh, &block);
    rebuild_accesses(b_, block);
    applied_.outputs.push_back(block.id);
    Stmt nest = b_.block(block);
    for (std::size_t i = iters.size(); i-- > 0;) {
      nest = make_loop(b_, vars[i], iters[i].extent, nest, ids[i]);
    }
    return nest;
  }

  // Its init and its body.
  void fill(const VarMap& fresh, Block* block) {
    const Reducer& max = plan_.max.reducer;
    std::vector<Expr> place;
    for (Expr index : max.store->indices) place.push_back(substitute(b_, index, fresh));
    const Expr so_far = b_.load(max.store->buffer, place);
    const Expr x = substitute(b_, max.update, fresh);
    const Expr now = substitute(b_, max.store->value, fresh);  // its order decides on NaN
    const BufferId kept = add_buffer(max.store->buffer, "_kept", Scope::kGlobal);
    const BufferId added = add_buffer(max.store->buffer, "_added", Scope::kGlobal);
    std::vector<Stmt> starts, steps = {b_.store(kept, place, rescaling(so_far, now)),
                                       b_.store(added, place, weight(x, now))};
    for (const WeightedSum& sum : plan_.sums) {
      const Store& store = *sum.pass.reducer.store;
      accumulators_.push_back(add_buffer(store.buffer, "_online", Scope::kGlobal));
      const BufferId to = accumulators_.back();
      starts.push_back(over_own(sum, fresh, [&](const VarMap& vars) {
        return b_.store(to, moved(store.indices, vars), b_.constant(0, dtype()));
      }));
      steps.push_back(over_own(sum, fresh, [&](const VarMap& vars) {
        const std::vector<Expr> at = moved(store.indices, vars);
        const Expr scaled = b_.mul(b_.load(to, at), b_.load(kept, place));
        Expr term = b_.load(added, place);
        for (Expr factor : moved(sum.above, vars)) term = b_.mul(term, factor);
        for (Expr factor : moved(sum.below, vars)) term = b_.div(term, factor);
        return b_.store(to, at, b_.add(scaled, term));
      }));
    }
    starts.push_back(b_.store(max.store->buffer, place, identity_of(b_, max.op, dtype())));
    steps.push_back(b_.store(max.store->buffer, place, now));
    block->init = b_.seq(starts);
    block->body = b_.seq(steps);
    const auto is_factor = [](const WeightedSum& sum) {
      return sum.above.size() == 1 && sum.below.empty();
    };
    // Of one factor the body shows what a partial result holds (combiner.h).
    if (!std::all_of(plan_.sums.begin(), plan_.sums.end(), is_factor)) block->combiner = combiner();
  }

  // How results of parts combine: the last target is the maximum.
  const Combiner* combiner() {
    std::vector<BufferId> targets = accumulators_;
    targets.push_back(plan_.max.reducer.store->buffer);
    std::vector<const Var*> left, right;
    for (const BufferId target : targets) {
      const std::string name(b_.buffer(target).name);
      left.push_back(b_.fresh_var(name, dtype()));
      right.push_back(b_.fresh_var(name, dtype()));
    }
    const Expr so_far = left.back(), x = right.back();
    const Expr now = b_.max(so_far, x);
    std::vector<Expr> results;
    for (std::size_t i = 0; i < accumulators_.size(); ++i) {
      results.push_back(
          b_.add(b_.mul(left[i], rescaling(so_far, now)), b_.mul(weight(x, now), right[i])));
    }
    results.push_back(now);
    return b_.combiner({left, right, results});
  }

  std::vector<Expr> moved(std::span<const Expr> indices, const VarMap& vars) {
    std::vector<Expr> out;
    for (Expr index : indices) out.push_back(substitute(b_, index, vars));
    return out;
  }

  // A statement for each element of the sum; `make` gets its variables.
  template <typename Make>
  Stmt over_own(const WeightedSum& sum, const VarMap& fresh, const Make& make) {
    VarMap vars;
    for (const auto& [mine, its] : sum.to_max) vars[mine] = fresh.at(its.template as<Var>()->id);
    std::vector<const Var*> own;
    for (const IterVar* iter : sum.own) {
      own.push_back(b_.fresh_var(iter->var->name));
      vars[iter->var->id] = Expr(own.back());
    }
    Stmt out = make(vars);
    for (std::size_t i = own.size(); i-- > 0;) {
      out = make_loop(b_, own[i], sum.own[i]->extent, out, b_.fresh_loop_id());
    }
    return out;
  }

  // T = T_online*exp(M - M) / divisors: what is infinite throughout is no number, as before.
  Stmt finish(std::size_t i) {
    const WeightedSum& sum = plan_.sums[i];
    const Store& max = *plan_.max.reducer.store;
    const Store& store = *sum.pass.reducer.store;
    std::vector<Expr> extents;
    std::vector<const IterVar*> iters;
    for (const IterVar& iter : sum.pass.block->iters) {
      if (iter.kind != IterKind::kSpatial) continue;
      iters.push_back(&iter);
      extents.push_back(iter.extent);
    }
    VarMap of_max;  // the maximum's variables, as those of the sum
    for (const auto& [mine, its] : sum.to_max) of_max[its.as<Var>()->id] = var_of(sum, mine);
    const NewNest nest =
        make_nest(b_, sum.pass.block->name, extents, [&](std::span<const Expr> fresh) {
          VarMap vars;
          for (std::size_t v = 0; v < iters.size(); ++v) vars[iters[v]->var->id] = fresh[v];
          const Expr m = substitute(b_, b_.load(max.buffer, moved(max.indices, of_max)), vars);
          const std::vector<Expr> at = moved(store.indices, vars);
          Expr value = b_.mul(b_.load(accumulators_[i], at), exp_of(b_.sub(m, m)));
          for (Expr divisor : moved(sum.divisors, vars)) value = b_.div(value, divisor);
          return b_.store(store.buffer, at, value);
        });
    applied_.outputs.push_back(nest.outputs[0]);
    return nest.stmt;
  }

  static Expr var_of(const WeightedSum& sum, VarId id) {
    for (const IterVar& iter : sum.pass.block->iters) {
      if (iter.var->id == id) return Expr(iter.var);
    }
    PRUNERC_UNREACHABLE("a variable of the sum");
  }

  const Program& program_;
  Dataflow flow_;
  IrBuilder b_;
  const OnlinePlan& plan_;
  std::vector<BufferId> accumulators_;  // beside the sums
  Applied applied_;
};

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kOnline>(const Program& program, const Call& call) {
  PRUNERC_TRY(const OnlinePlan plan, OnlinePlanner(program).plan(call.block(0)));
  return OnlineRewrite(program, plan).run();
}

}  // namespace prunerc::schedule
