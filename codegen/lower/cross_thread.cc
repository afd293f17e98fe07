// A reduction whose iterations are threads becomes a partial result in each thread and steps that
// combine them. All of it is blocks and loops over threads beside each other, so that the program
// can still be interpreted.
#include "codegen/lower/gpu.h"
#include "codegen/lower/kernel.h"
#include "codegen/lower/lanes.h"
#include "codegen/lower/util.h"
#include "ir/analysis/region.h"
#include "ir/map.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

constexpr int64_t kWarp = 32;

/// op(identity, x) == x.
Expr identity_of(IrBuilder& b, ExprKind op, DType dtype) {
  const bool floats = is_float(dtype);
  const double inf = std::numeric_limits<double>::infinity();
  switch (op) {
    case ExprKind::kMul: return b.constant(1, dtype);
    case ExprKind::kMin: return floats ? b.float_imm(inf, dtype) : b.int_imm(max_int(dtype), dtype);
    case ExprKind::kMax:
      return floats ? b.float_imm(-inf, dtype) : b.int_imm(min_int(dtype), dtype);
    default: return b.constant(0, dtype);
  }
}

// One block with its loops, those of the kernel's blocks aside.
struct Site {
  std::vector<const Loop*> path;
  const Block* block = nullptr;
  std::size_t first = 0;             // position in path of the outermost reduction loop
  std::vector<const Loop*> threads;  // of the reduction
  std::vector<const Loop*> spatial;  // inside of path[first]
  Expr outer_guard;                  // conjuncts of the guard that know no reduction loop
};

class CrossThread {
 public:
  explicit CrossThread(const Program& program) : b_(program) {}

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
      Stmt r = map_children(
          b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
      path_.pop_back();
      return around(*loop, r);
    }
    if (const Block* block = s.as<Block>()) return go_block(s, *block);
    return map_children(
        b_, s, [&](Stmt child) { return go(child); }, [](Expr e) { return e; });
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
    if (!sum || (block.init.defined() && init == nullptr) || !take_guard(&site)) {
      failed_ = error(Diag::kUnsupported, "a reduction across threads of this form (block " +
                                              std::string(block.name) + ")");
      return s;
    }
    return rewrite(site, *store, *sum, init);
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

  // Splits the guard; false if a conjunct relates reduction loops with others.
  bool take_guard(Site* site) {
    if (!site->block->guard.defined()) return true;
    std::set<VarId> reduce;
    for (std::size_t i = site->first; i < site->path.size(); ++i)
      reduce.insert(site->path[i]->var->id);
    for (const Loop* loop : site->spatial) reduce.erase(loop->var->id);
    for (Expr conjunct : conjuncts(site->block->guard)) {
      std::set<VarId> vars;
      collect_vars(conjunct, &vars);
      const auto num_inner =
          std::count_if(vars.begin(), vars.end(), [&](VarId id) { return reduce.count(id) != 0; });
      if (num_inner == static_cast<std::ptrdiff_t>(vars.size()) && num_inner > 0) continue;
      if (num_inner > 0) return false;
      site->outer_guard =
          site->outer_guard.defined() ? b_.logical_and(site->outer_guard, conjunct) : conjunct;
    }
    return true;
  }

  // The block's spatial iterations in terms of the loops; other variables stay as they are.
  VarMap bindings(const Block& block) {
    VarMap map;
    for (const IterVar& iter : block.iters) {
      if (iter.kind == IterKind::kSpatial) map[iter.var->id] = iter.binding;
    }
    return map;
  }

  // A block around statements over loop variables: each becomes a spatial iteration.
  Stmt block_of(const std::string& name, Stmt body, Expr guard,
                const std::vector<std::pair<const Var*, Expr>>& loops) {
    Block block{};
    block.id = b_.fresh_block_id();
    block.name = b_.copy(std::string_view(name));
    std::vector<IterVar> iters;
    VarMap map;
    for (const auto& [var, extent] : loops) {
      const Var* iter = b_.fresh_var(var->name);
      iters.push_back({iter, extent, IterKind::kSpatial, Expr(var)});
      map[var->id] = Expr(iter);
    }
    block.iters = b_.copy(iters);
    block.guard = guard;
    block.body = substitute(b_, body, map);
    rebuild_accesses(b_, block);
    return b_.block(block);
  }

  static std::vector<std::pair<const Var*, Expr>> vars_of(const std::vector<const Loop*>& loops) {
    std::vector<std::pair<const Var*, Expr>> out;
    for (const Loop* loop : loops) out.push_back({loop->var, loop->extent});
    return out;
  }

  // `body` as a block in the site's spatial loops and, if there are threads, loops over these; all
  // loops and variables are fresh. `attrs` go to the outermost loop.
  Stmt nest(const Site& site, const std::string& name, Stmt body, Expr guard,
            const std::vector<const Loop*>& threads, std::optional<Attr> attr = std::nullopt) {
    std::vector<const Loop*> loops = threads;
    loops.insert(loops.end(), site.spatial.begin(), site.spatial.end());
    std::vector<const Loop*> all(site.path.begin(),
                                 site.path.begin() + static_cast<std::ptrdiff_t>(site.first));
    all.insert(all.end(), loops.begin(), loops.end());
    Stmt r = block_of(name, body, guard, vars_of(all));
    for (std::size_t i = loops.size(); i-- > 0;) {
      Loop loop = *loops[i];
      loop.body = r;
      loop.attrs = {};
      if (i == 0 && attr) loop.attrs = b_.copy(std::span<const Attr>(&*attr, 1));
      r = b_.loop(loop);
    }
    return loops.empty() ? r : clone_with_fresh_ids(b_, r);
  }

  std::vector<Expr> thread_vars(const Site& site) {
    std::vector<Expr> out;
    for (const Loop* loop : site.threads) out.push_back(Expr(loop->var));
    return out;
  }

  // Adds a buffer with the leading extents before the result's shape.
  BufferId partial_buffer(const std::string& name, const Buffer& result,
                          const std::vector<int64_t>& leading, Scope scope) {
    std::vector<Expr> shape;
    for (int64_t extent : leading) shape.push_back(b_.int_imm(extent));
    shape.insert(shape.end(), result.shape.begin(), result.shape.end());
    return b_.add_buffer(name, result.dtype, shape, scope, BufferRole::kIntermediate);
  }

  static std::vector<Expr> concat(std::vector<Expr> a, const std::vector<Expr>& b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  // Everything that one rewrite knows.
  struct Reduction {
    Site site;
    ExprKind op;
    std::string name;
    BufferId result;
    std::vector<Expr> element;  // of the result, over the loops
    std::vector<Stmt> after;
  };

  Stmt rewrite(const Site& site, const Store& store, const Accumulation& sum, const Store* init) {
    const Buffer result = b_.buffer(store.buffer);
    Reduction r{site, sum.kind, std::string(site.block->name), store.buffer, {}, {}};
    const VarMap map = bindings(*site.block);
    for (Expr index : store.indices) r.element.push_back(substitute(b_, index, map));
    std::vector<int64_t> extents;
    for (const Loop* loop : site.threads) extents.push_back(loop->extent.as<IntImm>()->value);

    const bool by_warps = site.threads.size() == 1 &&
                          site.threads[0]->loop_kind == LoopKind::kThreadX &&
                          is_warp_shaped(extents[0]);
    const BufferId partial = partial_buffer(r.name + "_partial", result, extents,
                                            by_warps ? Scope::kLocal : Scope::kShared);
    const std::vector<Expr> own = concat(thread_vars(site), r.element);
    Stmt start =
        nest(site, r.name + "_start", b_.store(partial, own, identity_of(b_, r.op, result.dtype)),
             site.outer_guard, site.threads);
    if (by_warps) {
      combine_warps(r, partial, result, extents[0], init);
    } else {
      combine_tree(r, partial, extents, init);
    }
    around_[site.path[site.first]->id] = {{start}, r.after};
    return accumulate_in(site, store, sum, partial);
  }

  static bool is_warp_shaped(int64_t n) {
    if (n > kWarp) return n % kWarp == 0;
    return n > 0 && (n & (n - 1)) == 0;
  }

  // The block, accumulating into the thread's partial result.
  Stmt accumulate_in(const Site& site, const Store& store, const Accumulation& sum,
                     BufferId partial) {
    Block block = *site.block;
    std::vector<IterVar> iters(block.iters.begin(), block.iters.end());
    std::vector<Expr> indices;
    for (const Loop* loop : site.threads) {
      const Var* lane = b_.fresh_var("lane");
      iters.push_back({lane, loop->extent, IterKind::kSpatial, Expr(loop->var)});
      indices.push_back(Expr(lane));
    }
    indices.insert(indices.end(), store.indices.begin(), store.indices.end());
    block.iters = b_.copy(iters);
    block.init = {};
    block.body =
        b_.store(partial, indices, b_.binary(sum.kind, b_.load(partial, indices), sum.term));
    rebuild_accesses(b_, block);
    return b_.block(block);
  }

  // result = init op last, or result = result op last.
  Stmt finish_with(const Reduction& r, const Store* init, Expr last) {
    Expr before = b_.load(r.result, r.element);
    if (init != nullptr) before = substitute(b_, init->value, bindings(*r.site.block));
    return b_.store(r.result, r.element, b_.binary(r.op, before, last));
  }

  // Shuffles inside of warps; the first lane of each leaves its result for everyone.
  void combine_warps(Reduction& r, BufferId partial, const Buffer& result, int64_t num_threads,
                     const Store* init) {
    const Site& site = r.site;
    const Expr lane(site.threads[0]->var);
    const int64_t width = std::min(num_threads, kWarp);
    for (int64_t step = width / 2; step > 0; step /= 2) {
      const std::vector<Expr> mine = concat({lane}, r.element);
      const std::vector<Expr> other = concat({b_.add(lane, b_.int_imm(step))}, r.element);
      Stmt combined =
          b_.store(partial, mine, b_.binary(r.op, b_.load(partial, mine), b_.load(partial, other)));
      Expr takes = b_.lt(b_.floormod(lane, b_.int_imm(width)), b_.int_imm(step));
      Stmt body = b_.if_then(takes, combined);
      r.after.push_back(nest(site, r.name + "_shuffle", body, site.outer_guard, site.threads,
                             Attr{kShuffleAttr, step}));
    }
    const int64_t num_warps = num_threads / width;
    const BufferId warps = partial_buffer(r.name + "_warps", result, {num_warps}, Scope::kShared);
    const Expr warp = b_.floordiv(lane, b_.int_imm(width));
    Stmt leave = b_.if_then(
        b_.eq(b_.floormod(lane, b_.int_imm(width)), b_.int_imm(0)),
        b_.store(warps, concat({warp}, r.element), b_.load(partial, concat({lane}, r.element))));
    r.after.push_back(nest(site, r.name + "_leave", leave, site.outer_guard, site.threads));
    // A chain over the warps in every thread: no second round of steps, no second barrier.
    Expr last = b_.load(warps, concat({b_.int_imm(0)}, r.element));
    for (int64_t w = 1; w < num_warps; ++w) {
      last = b_.binary(r.op, last, b_.load(warps, concat({b_.int_imm(w)}, r.element)));
    }
    r.after.push_back(
        nest(site, r.name + "_finish", finish_with(r, init, last), site.outer_guard, {}));
  }

  // Halves the number of partial results in shared memory until one is left.
  void combine_tree(Reduction& r, BufferId partial, const std::vector<int64_t>& extents,
                    const Store* init) {
    const Site& site = r.site;
    for (std::size_t d = 0; d < extents.size(); ++d) {
      std::vector<Expr> mine = thread_vars(site);
      for (std::size_t done = 0; done < d; ++done) mine[done] = b_.int_imm(0);
      std::vector<const Loop*> threads(site.threads.begin() + static_cast<std::ptrdiff_t>(d),
                                       site.threads.end());
      for (int64_t left = extents[d]; left > 1; left = (left + 1) / 2) {
        const int64_t step = (left + 1) / 2;
        std::vector<Expr> other = mine;
        other[d] = b_.add(mine[d], b_.int_imm(step));
        Stmt combined = b_.store(partial, concat(mine, r.element),
                                 b_.binary(r.op, b_.load(partial, concat(mine, r.element)),
                                           b_.load(partial, concat(other, r.element))));
        Stmt body = b_.if_then(b_.lt(other[d], b_.int_imm(left)), combined);
        r.after.push_back(nest(site, r.name + "_combine", body, site.outer_guard, threads));
      }
    }
    const std::vector<Expr> zeros(extents.size(), b_.int_imm(0));
    Expr last = b_.load(partial, concat(zeros, r.element));
    r.after.push_back(
        nest(site, r.name + "_finish", finish_with(r, init, last), site.outer_guard, {}));
  }

  IrBuilder b_;
  std::vector<const Loop*> path_;
  std::map<LoopId, std::pair<std::vector<Stmt>, std::vector<Stmt>>> around_;
  std::optional<Error> failed_;
};

}  // namespace

Result<Program> lower_cross_thread(const Program& program, const Target&) {
  return CrossThread(program).run(program);
}

}  // namespace prunerc::codegen
