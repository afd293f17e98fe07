// Reductions over threads become partial results that shuffles and shared memory combine.
// Before: iterations of a reduction are threads. After: shuffles combine partial results (P) of a
// warp, whose first lane writes them; of several (W), each thread adds up all. A shared C that is one
// value of a block becomes local. Others are halved in shared memory; tuples: cross_thread_tuple.cc.
//     for k in 64 bind(thread.x) { block "C" [vi: S(8) = b, vk: R(64) = k] { init { .. } .. } }
// ~>  for k .. { P[k, b] = 0f32 }  for k .. { P[k, b] = P[k, b] + A[b, k] }
//     for k .. {shuffle = 16} { if k % 32 < 16 { P[k, b] = P[k, b] + P[k + 16, b] } }  .. = 8, ..
//     for k .. { if k % 32 == 0 { W[k // 32, b] = P[k, b] } }  C[b] = 0f32 + (W[0, b] + W[1, b])
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/analysis/vectorization.h"
#include "codegen/lower/gpu/reduction_site.h"
#include "codegen/lower/passes.h"
#include "ir/analysis/accumulator.h"
#include "ir/arith/prove.h"
#include "ir/thread_axis.h"

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

using Site = ReductionSite;

class CrossThread {
 public:
  explicit CrossThread(const Program& program) : b_(program) {
    walk(
        program.root(),
        [&](Stmt s) {
          const Block* block = s.as<Block>();
          for (std::size_t w = 0; block != nullptr && w < block->writes.size(); ++w) {
            ++num_writers_[block->writes[w].buffer];
          }
          return true;
        },
        [](Expr) {});
  }

  Result<Program> run(const Program& program) {
    Stmt root = go(program.root());
    if (failed_) return *failed_;
    return b_.finish(root);
  }

 private:
  Stmt go(Stmt s) {
    if (!s.defined() || failed_) return s;
    if (const Loop* loop = s.as<Loop>()) {
      path_.push_back(loop);
      Stmt r = map_stmts(b_, s, [&](Stmt child) { return go(child); });
      path_.pop_back();
      return around(*loop, r);
    }
    if (const Block* block = s.as<Block>()) return go_block(s, *block);
    return map_stmts(b_, s, [&](Stmt child) { return go(child); });
  }

  // What goes before and after a loop, if a reduction starts there.
  Stmt around(const Loop& loop, Stmt r) {
    const auto it = around_.find(loop.id);
    if (it == around_.end()) return r;
    std::vector<Stmt> all = it->second.first;
    all.push_back(r);
    all.insert(all.end(), it->second.second.begin(), it->second.second.end());
    around_.erase(it);
    return b_.seq(all);
  }

  Stmt go_block(Stmt s, const Block& block) {
    Site site;
    site.path = path_;
    site.block = &block;
    if (!find_reduction(&site) || site.threads.empty()) return s;
    const Store* store = block.body.as<Store>();
    const std::optional<Accumulation> sum = store != nullptr ? accumulation(*store) : std::nullopt;
    const Store* init = block.init.as<Store>();
    if (!take_guard(&site)) return refuse(s, block);
    if (sum && (!block.init.defined() || init != nullptr)) return rewrite(site, *store, *sum, init);
    const std::optional<SplitReduction> split = split_tuple(b_, site);
    if (!split) return refuse(s, block);
    around_[site.path[site.first]->id] = {split->before, split->after};
    return split->block;
  }

  Stmt refuse(Stmt s, const Block& block) {
    failed_ = error(Diag::kUnsupported, "a reduction across threads of this form (block " +
                                            std::string(block.name) + ")");
    return s;
  }

  // Which loops take part in the block's reduction.
  static bool find_reduction(Site* site) {
    std::set<VarId> reduce;
    for (const IterVar& iter : site->block->iters) {
      if (iter.kind == IterKind::kReduce) collect_vars(iter.binding, &reduce);
    }
    bool open = false;
    for (std::size_t i = 0; i < site->path.size(); ++i) {
      const Loop* loop = site->path[i];
      const bool is_reduce = reduce.count(loop->var->id) != 0;
      if (is_reduce && !open) site->first = i;
      open = open || is_reduce;
      if (is_reduce && is_lane_axis(loop->loop_kind)) site->threads.push_back(loop);
      if (open && !is_reduce) site->spatial.push_back(loop);
    }
    return open;
  }

  // Splits the guard. A conjunct may relate reduction loops with others, as the end of the last of several parts does,
  // if each result has an instance anyway: the first one. False if it may have none, or if which threads have
  // instances of a tuple depends on which of their results it is: the flag is a thread's.
  bool take_guard(Site* site) {
    if (!site->block->guard.defined()) return true;
    VarRanges ranges;
    VarMap zeros;  // of the reduction loops
    for (std::size_t i = 0; i < site->path.size(); ++i) {
      const Loop* loop = site->path[i];
      ranges.bind(loop->var, loop->extent);
      if (i >= site->first) zeros[loop->var->id] = b_.int_imm(0);
    }
    for (const Loop* loop : site->spatial) zeros.erase(loop->var->id);
    const bool is_tuple = site->block->body.as<Store>() == nullptr;
    bool is_mixed = false, has_first = true;
    for (Expr conjunct : conjuncts(site->block->guard)) {
      std::set<VarId> vars;
      collect_vars(conjunct, &vars);
      const auto num_inner =
          std::count_if(vars.begin(), vars.end(), [&](VarId id) { return zeros.count(id) != 0; });
      if (num_inner == 0) {
        site->outer_guard = conjunction(b_, site->outer_guard, conjunct);
        continue;
      }
      const bool of_results =
          std::any_of(site->spatial.begin(), site->spatial.end(),
                      [&](const Loop* loop) { return vars.count(loop->var->id) != 0; });
      if (is_tuple && of_results) return false;
      is_mixed = is_mixed || num_inner < std::ssize(vars);
      has_first = has_first && prove(substitute(b_, conjunct, zeros), ranges) == Proof::kYes;
    }
    return !is_mixed || has_first;
  }

  // Adds a buffer with the leading extents before those of one result's place.
  BufferId partial_buffer(const std::string& name, DType dtype, const std::vector<int64_t>& leading,
                          std::span<const Expr> shape, Scope scope) {
    std::vector<Expr> extents;
    for (int64_t extent : leading) extents.push_back(b_.int_imm(extent));
    return b_.add_buffer(name, dtype, concat(extents, shape), scope, BufferRole::kIntermediate);
  }

  // Everything that one rewrite knows.
  struct Reduction {
    Site site;
    ExprKind op;
    std::string name;
    BufferId result;
    std::vector<Expr> element;  // of the result, over the loops
    // The loops of results themselves: where axes are fused a block's elements may lie apart, and
    // shared memory has no room for gaps.
    std::vector<Expr> place, places;
    std::vector<Stmt> after;
  };

  static void find_place(Reduction* r, const Buffer& result) {
    const auto add = [r](const Loop* loop) {
      r->place.emplace_back(loop->var);
      r->places.push_back(loop->extent);
    };
    for (std::size_t i = 0; i < r->site.first; ++i) add(r->site.path[i]);
    for (const Loop* loop : r->site.spatial) add(loop);
    // A loop whose length varies is no extent of a buffer.
    const auto varies = [](Expr extent) { return extent.as<IntImm>() == nullptr; };
    if (std::none_of(r->places.begin(), r->places.end(), varies)) return;
    r->place = r->element;
    r->places.assign(result.shape.begin(), result.shape.end());
  }

  Stmt rewrite(const Site& site, const Store& store, const Accumulation& sum, const Store* init) {
    const Buffer result = b_.buffer(store.buffer);
    Reduction r{site, sum.kind, std::string(site.block->name), store.buffer, {}, {}, {}, {}};
    const VarMap map = spatial_bindings(*site.block);
    for (Expr index : store.indices) r.element.push_back(substitute(b_, index, map));
    find_place(&r, result);
    const std::vector<int64_t> extents = site.extents();
    const bool by_warps = site.by_warps();
    const std::vector<Expr> own = concat(site.lanes(), r.element);
    // Nobody waits for others while it adds up.
    const BufferId sum_so_far =
        partial_buffer(r.name + "_sum", result.dtype, extents, result.shape, Scope::kLocal);
    const BufferId partial = by_warps ? sum_so_far
                                      : partial_buffer(r.name + "_partial", result.dtype, extents,
                                                       r.places, Scope::kShared);
    const std::vector<Expr>& place = by_warps ? r.element : r.place;
    Stmt start =
        nest_at(b_, site, r.name + "_start",
                b_.store(sum_so_far, own, identity_of(b_, r.op, result.dtype)), site.threads);
    const auto at = [&](const std::vector<Expr>& leading) {
      return b_.load(partial, concat(leading, place));
    };
    r.after = combine_rounds(
        b_, site, [&](const std::vector<Expr>& mine, const std::vector<Expr>& other) {
          return b_.store(partial, concat(mine, place), b_.binary(r.op, at(mine), at(other)));
        });
    if (!by_warps) {
      const Stmt leave = b_.store(partial, concat(site.lanes(), place), b_.load(sum_so_far, own));
      r.after.insert(r.after.begin(), nest_at(b_, site, r.name + "_leave", leave, site.threads));
    }
    const bool for_all = is_for_all(site, result);
    // What one warp has combined its first lane writes, unless each thread has a result of its own.
    if (by_warps && extents[0] <= kWarpSize && result.scope != Scope::kLocal && !for_all) {
      const Stmt finish =
          b_.if_then(b_.eq(site.lanes()[0], b_.int_imm(0)), finish_with(r, init, at(site.lanes())));
      r.after.push_back(nest_at(b_, site, r.name + "_finish", finish, site.threads));
    } else {
      const Expr last = by_warps ? combine_warps(r, partial, result.dtype, extents[0])
                                 : at(std::vector<Expr>(extents.size(), b_.int_imm(0)));
      r.after.push_back(nest_at(b_, site, r.name + "_finish", finish_with(r, init, last), {}));
    }
    if (for_all) {
      Buffer registers = result;
      registers.scope = Scope::kLocal;
      b_.set_buffer(registers);
    }
    around_[site.path[site.first]->id] = {{start}, r.after};
    return accumulate_in(site, store, sum, sum_so_far);
  }

  // One value for a block of threads, written nowhere else: each thread makes it for itself, so that
  // they need not meet again.
  bool is_for_all(const Site& site, const Buffer& result) const {
    if (result.scope != Scope::kShared || result.role != BufferRole::kIntermediate) return false;
    const bool by_blocks = std::all_of(
        site.path.begin(), site.path.begin() + static_cast<std::ptrdiff_t>(site.first),
        [](const Loop* loop) {
          const IntImm* extent = loop->extent.as<IntImm>();
          return is_block_axis(loop->loop_kind) || (extent != nullptr && extent->value == 1);
        });
    return by_blocks && site.first > 0 && site.spatial.empty() && num_writers_.at(result.id) == 1;
  }

  // The block, accumulating into the thread's partial result.
  Stmt accumulate_in(const Site& site, const Store& store, const Accumulation& sum,
                     BufferId partial) {
    return block_with_lanes(b_, site, [&](const std::vector<Expr>& lanes) {
      const std::vector<Expr> indices = concat(lanes, store.indices);
      return b_.store(partial, indices, b_.binary(sum.kind, b_.load(partial, indices), sum.term));
    });
  }

  // result = init op last, or result = result op last.
  Stmt finish_with(const Reduction& r, const Store* init, Expr last) {
    Expr before = b_.load(r.result, r.element);
    if (init != nullptr) before = substitute(b_, init->value, spatial_bindings(*r.site.block));
    return b_.store(r.result, r.element, b_.binary(r.op, before, last));
  }

  // The first lane of each warp leaves its result for everyone; all of them in one value: a chain
  // over the warps in every thread, for which no second round of steps and no second barrier is
  // needed.
  Expr combine_warps(Reduction& r, BufferId partial, DType dtype, int64_t num_threads) {
    const Expr lane(r.site.threads[0]->var);
    const int64_t width = std::min(num_threads, kWarpSize);
    const int64_t num_warps = num_threads / width;
    const BufferId warps =
        partial_buffer(r.name + "_warps", dtype, {num_warps}, r.places, Scope::kShared);
    const Expr warp = b_.floordiv(lane, b_.int_imm(width));
    Stmt leave = b_.if_then(
        b_.eq(b_.floormod(lane, b_.int_imm(width)), b_.int_imm(0)),
        b_.store(warps, concat({warp}, r.place), b_.load(partial, concat({lane}, r.element))));
    r.after.push_back(nest_at(b_, r.site, r.name + "_leave", leave, r.site.threads));
    Expr last = b_.load(warps, concat({b_.int_imm(0)}, r.place));
    for (int64_t w = 1; w < num_warps; ++w) {
      last = b_.binary(r.op, last, b_.load(warps, concat({b_.int_imm(w)}, r.place)));
    }
    return last;
  }

  IrBuilder b_;
  std::vector<const Loop*> path_;
  std::map<LoopId, std::pair<std::vector<Stmt>, std::vector<Stmt>>> around_;
  std::map<BufferId, int> num_writers_;
  std::optional<Error> failed_;
};

}  // namespace

Result<Program> lower_cross_thread_reductions(const Program& program, const Target&) {
  return CrossThread(program).run(program);
}

}  // namespace prunerc::codegen
