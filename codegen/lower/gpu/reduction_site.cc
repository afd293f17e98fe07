#include "codegen/lower/gpu/reduction_site.h"

#include "codegen/lower/analysis/kernel.h"
#include "codegen/lower/analysis/statements.h"
#include "ir/analysis/region.h"
#include "ir/thread_axis.h"

#include <algorithm>

namespace prunerc::codegen {

using namespace ir;

bool ReductionSite::by_warps() const {
  if (threads.size() != 1 || threads[0]->loop_kind != LoopKind::kThreadX) return false;
  // A shuffle is the innermost loop over threads.
  const auto is_lane = [](const Loop* loop) { return is_lane_axis(loop->loop_kind); };
  if (std::any_of(spatial.begin(), spatial.end(), is_lane)) return false;
  const int64_t n = extents()[0];
  return n > kWarpSize ? n % kWarpSize == 0 : n > 0 && (n & (n - 1)) == 0;
}

std::vector<int64_t> ReductionSite::extents() const {
  std::vector<int64_t> out;
  for (const Loop* loop : threads) out.push_back(loop->extent.as<IntImm>()->value);
  return out;
}

std::vector<Expr> ReductionSite::lanes() const {
  std::vector<Expr> out;
  for (const Loop* loop : threads) out.push_back(Expr(loop->var));
  return out;
}

VarMap spatial_bindings(const Block& block) {
  VarMap map;
  for (const IterVar& iter : block.iters) {
    if (iter.kind == IterKind::kSpatial) map[iter.var->id] = iter.binding;
  }
  return map;
}

namespace {

// A block around statements over loop variables: each becomes a spatial iteration.
Stmt block_over(IrBuilder& b, const std::string& name, Stmt body, Expr guard,
                const std::vector<const Loop*>& loops) {
  Block block{};
  block.id = b.fresh_block_id();
  block.name = b.copy(std::string_view(name));
  std::vector<IterVar> iters;
  VarMap map;
  for (const Loop* loop : loops) {
    const Var* iter = b.fresh_var(loop->var->name);
    iters.push_back({iter, loop->extent, IterKind::kSpatial, Expr(loop->var)});
    map[loop->var->id] = Expr(iter);
  }
  block.iters = b.copy(iters);
  block.guard = guard;
  block.body = substitute(b, body, map);
  rebuild_accesses(b, block);
  return b.block(block);
}

}  // namespace

Stmt nest_at(IrBuilder& b, const ReductionSite& site, const std::string& name, Stmt body,
             const std::vector<const Loop*>& threads, std::optional<Attr> attr) {
  std::vector<const Loop*> loops = threads;
  loops.insert(loops.end(), site.spatial.begin(), site.spatial.end());
  std::vector<const Loop*> all(site.path.begin(),
                               site.path.begin() + static_cast<std::ptrdiff_t>(site.first));
  all.insert(all.end(), loops.begin(), loops.end());
  Stmt r = block_over(b, name, body, site.outer_guard, all);
  for (std::size_t i = loops.size(); i-- > 0;) {
    Loop loop = *loops[i];
    loop.body = r;
    loop.attrs = {};
    if (i == 0 && attr) loop.attrs = b.copy(std::span<const Attr>(&*attr, 1));
    r = b.loop(loop);
  }
  return clone_with_fresh_ids(b, r);
}

namespace {

std::vector<Stmt> shuffle_rounds(IrBuilder& b, const ReductionSite& site, const std::string& name,
                                 const CombineAt& combine) {
  std::vector<Stmt> out;
  const Expr lane(site.threads[0]->var);
  const int64_t width = std::min(site.extents()[0], kWarpSize);
  for (int64_t step = width / 2; step > 0; step /= 2) {
    const Expr takes = b.lt(b.floormod(lane, b.int_imm(width)), b.int_imm(step));
    const Stmt body = b.if_then(takes, combine({lane}, {b.add(lane, b.int_imm(step))}));
    out.push_back(
        nest_at(b, site, name + "_shuffle", body, site.threads, Attr{kShuffleAttr, step}));
  }
  return out;
}

std::vector<Stmt> tree_rounds(IrBuilder& b, const ReductionSite& site, const std::string& name,
                              const CombineAt& combine) {
  std::vector<Stmt> out;
  const std::vector<int64_t> extents = site.extents();
  std::vector<Expr> mine = site.lanes();
  for (std::size_t d = 0; d < extents.size(); ++d) {
    const std::vector<const Loop*> threads(site.threads.begin() + static_cast<std::ptrdiff_t>(d),
                                           site.threads.end());
    for (int64_t left = extents[d]; left > 1; left = (left + 1) / 2) {
      std::vector<Expr> other = mine;
      other[d] = b.add(mine[d], b.int_imm((left + 1) / 2));
      const Stmt body = b.if_then(b.lt(other[d], b.int_imm(left)), combine(mine, other));
      out.push_back(nest_at(b, site, name + "_combine", body, threads));
    }
    mine[d] = b.int_imm(0);
  }
  return out;
}

}  // namespace

std::vector<Stmt> combine_rounds(IrBuilder& b, const ReductionSite& site,
                                 const CombineAt& combine) {
  const std::string name(site.block->name);
  return site.by_warps() ? shuffle_rounds(b, site, name, combine)
                         : tree_rounds(b, site, name, combine);
}

Stmt block_with_lanes(IrBuilder& b, const ReductionSite& site,
                      const std::function<Stmt(const std::vector<Expr>& lanes)>& body) {
  Block block = *site.block;
  std::vector<IterVar> iters(block.iters.begin(), block.iters.end());
  std::vector<Expr> lanes;
  for (const Loop* loop : site.threads) {
    const Var* lane = b.fresh_var("lane");
    iters.push_back({lane, loop->extent, IterKind::kSpatial, Expr(loop->var)});
    lanes.push_back(Expr(lane));
  }
  block.iters = b.copy(iters);
  block.init = {};
  block.body = body(lanes);
  rebuild_accesses(b, block);
  return b.block(block);
}

}  // namespace prunerc::codegen
