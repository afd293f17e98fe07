// blockize(@L): a nest goes inside its one block, which then computes a tile per instance (D21).
// Needs: serial loops straight around the block; each binding is a tile's number times its extent
// plus a position that runs through the tile once; the guard says nothing of the loops inside; with
// an init instances may be reordered. After: old order; a tile is initialised before its first
// update.
//   for o in 4 { for i in 16 @L { block @B [v: S(64) = o*16 + i] { T[v] = X[v] } } }
// ~>
//   for o in 4 { block @B [v: S(4) = o] { for i in 16 @L { T[v*16 + i] = X[v*16 + i] } } }
#include "ir/analysis/region.h"
#include "ir/arith/iter_map.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/primitive.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

// An iteration variable as tile * tile_extent + inner.
struct TiledIter {
  Expr tile;   // over the loops outside
  Expr inner;  // over the loops that go inside, in [0, tile_extent)
  int64_t tile_extent = 1;
};

struct BlockizePlan {
  std::unique_ptr<IrBuilder> builder;  // owns the expressions
  Site site;
  const Block* block = nullptr;
  std::vector<const Loop*> loops;  // go inside the block, outermost first
  std::vector<TiledIter> iters;    // by the block's iteration variables
};

Error unfit(LoopId loop, std::string what) {
  return error(Diag::kBlockizeForm, loop, std::move(what));
}

bool mentions_any(Expr e, const std::vector<const Loop*>& loops) {
  return std::any_of(loops.begin(), loops.end(),
                     [&](const Loop* loop) { return mentions(e, loop->var->id); });
}

std::string quoted(const IterVar& iter) { return "'" + std::string(iter.var->name) + "'"; }

// The parts of a binding with and without the loops inside; false if a term has both.
bool separate(const Linear& binding, const std::vector<const Loop*>& inside,
              const std::vector<const Loop*>& outside, Linear* tile, Linear* inner) {
  *tile = Linear::of(binding.constant);
  *inner = Linear::of(int64_t{0});
  for (const Term& term : binding.terms) {
    bool has_inner = false, has_outer = false;
    for (Expr factor : term.factors()) {
      has_inner |= mentions_any(factor, inside);
      has_outer |= mentions_any(factor, outside);
    }
    if (has_inner && has_outer) return false;
    Linear& part = has_inner ? *inner : *tile;
    part = part + Linear::of(term);
  }
  return !binding.overflow;
}

std::optional<Linear> divided(Linear sum, int64_t by) {
  if (sum.constant % by != 0) return std::nullopt;
  sum.constant /= by;
  for (Term& term : sum.terms) {
    if (term.coef % by != 0) return std::nullopt;
    term.coef /= by;
  }
  return sum;
}

Result<void> check_init(IrBuilder& b, const Program& program, const Block& block, LoopId id,
                        const std::vector<const Loop*>& loops) {
  const std::string fault = order_fault(b, program, block);
  if (!fault.empty()) return error(Diag::kBlockOrderFixed, block.id, fault);
  for (const Loop* loop : loops) {
    const bool spatial =
        std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
          return iter.kind == IterKind::kSpatial && mentions(iter.binding, loop->var->id);
        });
    if (spatial && feeds_reduction(*loop, block)) {
      return unfit(id, "a loop feeds both spatial and reduction variables");
    }
  }
  return {};
}

Result<std::vector<TiledIter>> tile_iters(IrBuilder& b, const Block& block, LoopId id,
                                          const std::vector<const Loop*>& inside,
                                          const std::vector<const Loop*>& outside,
                                          const VarRanges& ranges) {
  std::vector<Linear> tiles(block.iters.size());
  std::vector<Expr> inner;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    Linear position;
    if (!separate(to_linear(b, block.iters[i].binding, ranges), inside, outside, &tiles[i],
                  &position)) {
      return unfit(id, quoted(block.iters[i]) + " mixes loops inside and outside");
    }
    inner.push_back(to_expr(b, position));
  }
  std::vector<const Var*> vars;
  for (const Loop* loop : inside) vars.push_back(loop->var);
  const IterMapResult found = detect_iter_map(b, inner, vars, {}, ranges, IterMapLevel::kBijective);
  if (!found.ok())
    return unfit(id, "its iterations are no tile: " + std::string(to_string(found.error)));
  std::vector<TiledIter> out;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    // A symbolic extent is padded to whole tiles, or the instance is refused.
    const int64_t extent = constant(block.iters[i].extent).value_or(0);
    const Linear& reached = found.map.extents[i];
    const Interval interval = interval_of(to_linear(b, inner[i], ranges), ranges);
    if (!is_closed(block.iters[i].extent) || !reached.is_constant() || interval.lo != 0 ||
        interval.hi != reached.constant - 1) {
      return unfit(id, quoted(block.iters[i]) + " does not run from 0 inside");
    }
    const std::optional<Linear> tile = divided(tiles[i], reached.constant);
    if (!tile || extent % reached.constant != 0) {
      return unfit(id, quoted(block.iters[i]) + " is not cut into tiles of " +
                           std::to_string(reached.constant));
    }
    out.push_back({to_expr(b, *tile), inner[i], reached.constant});
  }
  return out;
}

Result<BlockizePlan> plan_blockize(const Program& program, LoopId id) {
  BlockizePlan plan;
  PRUNERC_TRY(plan.site, find_loop(program, id));
  Stmt body(plan.site.loop());
  while (const Loop* loop = body.as<Loop>()) {
    PRUNERC_TRY_VOID(check_serial(*loop));
    PRUNERC_TRY_VOID(constant_extent(*loop));
    plan.loops.push_back(loop);
    body = loop->body;
  }
  plan.block = body.as<Block>();
  if (plan.block == nullptr) return unfit(id, "it must be loops straight around one block");
  const Block& block = *plan.block;
  PRUNERC_TRY_VOID(Dataflow(program).find(block.id));
  for (const IterVar& iter : block.iters) {
    if (iter.kind == IterKind::kOpaque) return unfit(id, quoted(iter) + " is opaque");
  }
  if (block.guard.defined() && mentions_any(block.guard, plan.loops)) {
    return unfit(id, "the guard depends on the loops inside");
  }
  plan.builder = std::make_unique<IrBuilder>(program);
  IrBuilder& b = *plan.builder;
  VarRanges ranges = ranges_at(program, plan.site);
  for (const Loop* loop : plan.loops) {
    if (loop != plan.loops[0]) ranges.bind(loop->var, loop->extent);
  }
  if (block.init.defined()) {
    PRUNERC_TRY_VOID(
        on_instance(program, [&] { return check_init(b, program, block, id, plan.loops); }));
  }
  PRUNERC_TRY(plan.iters, tile_iters(b, block, id, plan.loops, plan.site.outer_loops(), ranges));
  return plan;
}

Applied apply_blockize(const Program& program, const BlockizePlan& plan) {
  IrBuilder& b = *plan.builder;
  const VarRanges domain(program.domain());
  const Block& block = *plan.block;
  Applied out;
  out.outputs.push_back(block.id);
  VarMap body_map, init_map, init_vars;
  std::vector<const Loop*> init_loops;
  if (block.init.defined()) {
    for (const Loop* loop : plan.loops) {
      if (feeds_reduction(*loop, block)) {
        init_vars[loop->var->id] = b.int_imm(0);
        continue;
      }
      init_loops.push_back(loop);
      init_vars[loop->var->id] = b.fresh_var(loop->var->name);
    }
  }
  std::vector<IterVar> iters(block.iters.begin(), block.iters.end());
  for (std::size_t i = 0; i < iters.size(); ++i) {
    const TiledIter& tiled = plan.iters[i];
    const Var* var = b.fresh_var(iters[i].var->name);
    const Expr start =
        tiled.tile_extent == 1 ? Expr(var) : b.mul(var, b.int_imm(tiled.tile_extent));
    auto position = [&](Expr inner) { return constant(inner) == 0 ? start : b.add(start, inner); };
    // A variable of one tile has only the value 0.
    Expr num_tiles = b.floordiv(iters[i].extent, b.int_imm(tiled.tile_extent));
    if (!constant(num_tiles)) num_tiles = simplify(b, num_tiles, domain);
    auto whole = [&](Expr inner) {
      return is_one(num_tiles) && tiled.tile_extent > 1 ? inner : position(inner);
    };
    body_map[iters[i].var->id] = whole(tiled.inner);
    init_map[iters[i].var->id] = whole(substitute(b, tiled.inner, init_vars));
    iters[i] = {var, num_tiles, iters[i].kind, tiled.tile};
  }
  Block tile = block;
  tile.iters = iters;
  VarRanges ranges;
  for (const IterVar& iter : iters) ranges.bind(iter.var, iter.extent);
  for (const Loop* loop : plan.loops) ranges.bind(loop->var, loop->extent);
  tile.body = map_exprs(b, substitute(b, block.body, body_map),
                        [&](Expr e) { return simplify(b, e, ranges); });
  for (std::size_t i = plan.loops.size(); i-- > 0;) {
    Loop copy = *plan.loops[i];
    copy.body = tile.body;
    tile.body = b.loop(copy);
  }
  if (block.init.defined()) {
    tile.init = substitute(b, block.init, init_map);
    std::vector<LoopId> ids;
    for (std::size_t i = 0; i < init_loops.size(); ++i) ids.push_back(b.fresh_loop_id());
    for (std::size_t i = init_loops.size(); i-- > 0;) {
      tile.init = make_loop(b, init_vars[init_loops[i]->var->id].as<Var>(), init_loops[i]->extent,
                            tile.init, ids[i]);
    }
    out.outputs.insert(out.outputs.end(), ids.begin(), ids.end());
  }
  rebuild_accesses(b, tile);
  out.program = b.finish(replace_at(b, plan.site, b.block(tile)));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kBlockize>(const Program& program, const Call& call) {
  PRUNERC_TRY(const BlockizePlan plan, plan_blockize(program, call.loop(0)));
  return apply_blockize(program, plan);
}

}  // namespace prunerc::schedule
