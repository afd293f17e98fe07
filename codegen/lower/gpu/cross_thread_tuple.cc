// Reductions of tuples across threads: argmax, online softmax, means with variances. Each thread
// has a partial tuple (p, v); how two of them combine is known (ir/analysis/combiner.h).
//     for k in 64 bind(thread.x) {
//       block "PV" [vi: S(8) = i, vk: R(64) = k] { P[vi] = ..  V[vi] = .. } }
// ~>  for k in 64 bind(thread.x) { p[k, i] = ..  v[k, i] = .. }         the inits; then the steps
//     for k in 64 bind(thread.x) {shuffle = 16} { if k % 32 < 16 { p[k, i] = ..  v[k, i] = .. } }
//     for k in 64 bind(thread.x) { if k % 32 == 0 { pw[k // 32, i] = p[k, i]  vw[..] = v[k, i] } }
//     pl = ..  vl = ..  for w in 2 { pl = ..  vl = .. }  P[i] = pl  V[i] = vl
// A thread that no instance fell to has nothing to combine, and the combiner may make no number of
// two such (0/0 in a mean). Where that can happen the tuple gets a flag: has it an instance?
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/gpu/reduction_site.h"
#include "ir/analysis/combiner.h"
#include "ir/arith/prove.h"
#include "ir/support/check.h"

#include <algorithm>
#include <utility>

namespace prunerc::codegen {
namespace {

using namespace ir;

// Where a tuple lies: a buffer for each store of the step (the flag last, if there is one), and
// the indices in front of those of the result.
struct Place {
  std::vector<BufferId> buffers;
  std::vector<Expr> leading;

  std::vector<Expr> at(std::span<const Expr> indices) const { return concat(leading, indices); }
  Place with(std::vector<Expr> other) const { return {buffers, std::move(other)}; }
};

class TupleSplit {
 public:
  TupleSplit(IrBuilder& b, const ReductionSite& site, CombinedTuple known)
      : b_(b), site_(site), known_(std::move(known)), name_(site.block->name) {
    const VarMap map = spatial_bindings(*site.block);
    init_ = substitute(b, site.block->init, map);
    body_ = substitute(b, site.block->body, map);
    has_flag_ = may_be_idle();
    if (has_flag_) add_flag();
  }

  SplitReduction run() {
    const Scope scope = site_.by_warps() ? Scope::kLocal : Scope::kShared;
    const Place own = place("partial", site_.extents(), scope, site_.lanes());
    out_.before = {nest_at(b_, site_, name_ + "_start", started(own, 0), site_.threads)};
    out_.block = block_with_lanes(b_, site_, [&](const std::vector<Expr>& lanes) {
      const Place here = own.with(lanes);
      return b_.seq({redirect(site_.block->body, here), flag(here, 1)});
    });
    out_.after = combine_rounds(b_, site_,
                                [&](const std::vector<Expr>& mine, const std::vector<Expr>& other) {
                                  return combined(own.with(mine), own.with(other));
                                });
    if (site_.by_warps()) {
      finish_warps(own);
    } else {
      finish(own.with(std::vector<Expr>(own.leading.size(), b_.int_imm(0))), nullptr);
    }
    return std::move(out_);
  }

 private:
  const Tuple& tuple() const { return known_.tuple; }

  // Can a thread have no instance? Not if, where the other reduction loops are 0, the guard holds.
  bool may_be_idle() {
    if (!site_.block->guard.defined()) return false;
    VarRanges ranges;
    VarMap zeros;
    for (std::size_t i = 0; i < site_.path.size(); ++i) {
      ranges.bind(site_.path[i]->var, site_.path[i]->extent);
      if (i >= site_.first) zeros[site_.path[i]->var->id] = b_.int_imm(0);
    }
    for (const auto* loops : {&site_.threads, &site_.spatial}) {
      for (const Loop* loop : *loops) zeros.erase(loop->var->id);
    }
    for (Expr conjunct : conjuncts(site_.block->guard)) {
      const bool of_threads =
          std::any_of(site_.threads.begin(), site_.threads.end(),
                      [&](const Loop* loop) { return mentions(conjunct, loop->var->id); });
      if (of_threads && prove(substitute(b_, conjunct, zeros), ranges) != Proof::kYes) return true;
    }
    return false;
  }

  // The combiner where either side may be nothing.
  void add_flag() {
    const Combiner& old = *known_.combiner;
    std::vector<const Var*> left(old.left.begin(), old.left.end());
    std::vector<const Var*> right(old.right.begin(), old.right.end());
    left.push_back(b_.fresh_var("has", DType::kI32));
    right.push_back(b_.fresh_var("has", DType::kI32));
    const Expr zero = b_.int_imm(0, DType::kI32);
    std::vector<Expr> results;
    for (std::size_t t = 0; t < old.results.size(); ++t) {
      const Expr both = b_.select(b_.eq(Expr(left.back()), zero), right[t], old.results[t]);
      results.push_back(b_.select(b_.eq(Expr(right.back()), zero), left[t], both));
    }
    results.push_back(b_.max(Expr(left.back()), Expr(right.back())));
    known_.combiner = b_.combiner({left, right, results});
  }

  Place place(const std::string& suffix, const std::vector<int64_t>& extents, Scope scope,
              std::vector<Expr> leading) {
    Place out{{}, std::move(leading)};
    std::vector<Expr> front;
    for (int64_t extent : extents) front.push_back(b_.int_imm(extent));
    for (const TupleStore& s : tuple().step) {
      const Buffer like = b_.buffer(s.store->buffer);
      out.buffers.push_back(b_.add_buffer(std::string(like.name) + "_" + suffix, like.dtype,
                                          concat(front, like.shape), scope,
                                          BufferRole::kIntermediate));
    }
    if (has_flag_) {
      out.buffers.push_back(b_.add_buffer(name_ + "_has_" + suffix, DType::kI32, front, scope,
                                          BufferRole::kIntermediate));
    }
    return out;
  }

  // The number of the step's store to a buffer; as many as there are if none is.
  std::size_t store_of(BufferId id) const {
    const auto found = std::find_if(tuple().step.begin(), tuple().step.end(),
                                    [&](const TupleStore& s) { return s.store->buffer == id; });
    return static_cast<std::size_t>(found - tuple().step.begin());
  }

  Expr redirect(Expr e, const Place& to) {
    const Expr r = map_children(b_, e, [&](Expr child) { return redirect(child, to); });
    const Load* load = r.as<Load>();
    const std::size_t at = load == nullptr ? tuple().step.size() : store_of(load->buffer);
    return at == tuple().step.size() ? r : b_.load(to.buffers[at], to.at(load->indices));
  }

  // A statement about the tuple, in another place.
  Stmt redirect(Stmt s, const Place& to) {
    const Stmt r = map_children(
        b_, s, [&](Stmt child) { return redirect(child, to); },
        [&](Expr e) { return redirect(e, to); });
    const Store* store = r.as<Store>();
    const std::size_t at = store == nullptr ? tuple().step.size() : store_of(store->buffer);
    if (at == tuple().step.size()) return r;
    return b_.store(to.buffers[at], to.at(store->indices), store->value);
  }

  Stmt flag(const Place& to, int64_t value) {
    if (!has_flag_) return {};
    return b_.store(to.buffers.back(), to.leading, b_.int_imm(value, DType::kI32));
  }

  Stmt started(const Place& to, int64_t has) {
    return b_.seq({redirect(init_, to), flag(to, has)});
  }

  // to = combine(to, from)
  Stmt combined(const Place& to, const Place& from) {
    Block in_place = *site_.block;
    in_place.init = started(to, 0);
    in_place.body = b_.seq({redirect(body_, to), flag(to, 1)});
    const std::optional<Tuple> there = read_tuple(in_place);
    PRUNERC_CHECK(there && there->size() == known_.combiner->results.size(),
                  "a tuple is one in every place");
    return combine_into(b_, *there, *known_.combiner,
                        [&](std::size_t target, std::span<const Expr> indices) {
                          return b_.load(from.buffers[buffer_of(target)],
                                         from.at(indices.subspan(to.leading.size())));
                        });
  }

  // The number of a target's buffer in places; the flag is the last target.
  std::size_t buffer_of(std::size_t target) const {
    if (target == tuple().size()) return tuple().step.size();
    return store_of(tuple().start[target].store->buffer);
  }

  // to = from; scratch of the step stays behind. Null `to`: the result.
  Stmt copied(const Place* to, const Place& from) {
    std::vector<Stmt> all;
    const VarMap map = spatial_bindings(*site_.block);
    for (std::size_t t = 0; t < tuple().size(); ++t) {
      const TupleStore& like = tuple().result(t);
      const std::size_t at = buffer_of(t);
      std::vector<Expr> indices;
      for (Expr index : like.store->indices) indices.push_back(substitute(b_, index, map));
      const Expr value = b_.load(from.buffers[at], from.at(indices));
      Stmt s = to == nullptr ? b_.store(like.store->buffer, indices, value)
                             : b_.store(to->buffers[at], to->at(indices), value);
      for (std::size_t i = like.loops.size(); i-- > 0;) {
        Loop loop = *like.loops[i];
        loop.body = s;
        s = b_.loop(loop);
      }
      all.push_back(s);
    }
    if (has_flag_ && to != nullptr) {
      all.push_back(
          b_.store(to->buffers.back(), to->leading, b_.load(from.buffers.back(), from.leading)));
    }
    return b_.seq(all);
  }

  // The first lane of each warp leaves its tuple for everyone.
  void finish_warps(const Place& own) {
    const Expr lane(site_.threads[0]->var);
    const int64_t num_threads = site_.extents()[0];
    const int64_t width = std::min(num_threads, kWarpSize);
    const int64_t num_warps = num_threads / width;
    const Place warps =
        place("warps", {num_warps}, Scope::kShared, {b_.floordiv(lane, b_.int_imm(width))});
    const Expr is_first = b_.eq(b_.floormod(lane, b_.int_imm(width)), b_.int_imm(0));
    out_.after.push_back(nest_at(b_, site_, name_ + "_leave",
                                 b_.if_then(is_first, copied(&warps, own)), site_.threads));
    const Loop loop = make_loop(b_, "w", num_warps);
    finish(warps.with({Expr(loop.var)}), &loop);
  }

  // Every thread puts together what lies at `parts`, in all iterations of the loop if there is one.
  void finish(const Place& parts, const Loop* over) {
    const Place last = place("last", {}, Scope::kLocal, {});
    Stmt step = combined(last, parts);
    if (over != nullptr) {
      Loop loop = *over;
      loop.body = step;
      step = b_.loop(loop);
    }
    const Stmt body = b_.seq({started(last, 1), step, copied(nullptr, last)});
    out_.after.push_back(nest_at(b_, site_, name_ + "_finish", body, {}));
  }

  IrBuilder& b_;
  const ReductionSite& site_;
  CombinedTuple known_;
  const std::string name_;
  Stmt init_, body_;  // the block's, over the loops
  bool has_flag_ = false;
  SplitReduction out_;
};

}  // namespace

std::optional<SplitReduction> split_tuple(IrBuilder& b, const ReductionSite& site) {
  std::optional<CombinedTuple> known = known_combination(b, *site.block);
  if (!known) return std::nullopt;
  return TupleSplit(b, site, std::move(*known)).run();
}

}  // namespace prunerc::codegen
