// blockize(loop):
//     for i0 { for k0 { for i1 in 16 @L { for k1 in 4 {
//       B: [vi: S = i0*16 + i1, vk: R = k0*4 + k1]  init { T[vi] = e }  T[vi] = T[vi] + f(vi, vk) }
//       } } }
//   ~>  blockize(@L)
//     for i0 { for k0 {
//       B: [vi: S = i0, vk: R = k0]
//          init { for i1 in 16 { T[vi*16 + i1] = e } }
//          for i1 in 16 @L { for k1 in 4 { T[vi*16 + i1] = T[vi*16 + i1] + f(vi*16 + i1, vk*4 + k1)
//          } } } }
//
// The inner block dissolves: its body stands in the loops, so that a block stays one node
// (ir/DESIGN.md, D6) and every analysis sees stores in loops.
//
// Requires: plain loops straight around one block; each binding is a tile number over the loops
// outside, times the tile's extent, plus a position over the loops inside; the positions run
// through the tile, each once; tiles divide the domain; the guard says nothing of the loops inside.
// With an init: the block's instances may be reordered, and no loop inside feeds both spatial and
// reduction variables.
// Legal because: instances run in the old order; the tile's elements are initialised together where
// the outer reduction variables are 0, which is before the first update of each, as no instance
// touches the element of another.
#include "schedule/primitive/blockize.h"

#include "ir/analysis/iter_map.h"
#include "ir/analysis/linear.h"
#include "ir/analysis/region.h"
#include "ir/analysis/simplify.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

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

Result<void> check_init(IrBuilder& b, const Block& block, LoopId id,
                        const std::vector<const Loop*>& loops) {
  const std::string fault = order_fault(b, block);
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

}  // namespace

Result<BlockizePlan> plan_blockize(const Program& program, LoopId id) {
  BlockizePlan plan;
  PRUNERC_TRY(plan.site_, find_loop(program, id));
  Stmt body(plan.site_.loop());
  while (const Loop* loop = body.as<Loop>()) {
    PRUNERC_TRY_VOID(check_plain(*loop));
    PRUNERC_TRY_VOID(constant_extent(*loop));
    plan.loops_.push_back(loop);
    body = loop->body;
  }
  plan.block_ = body.as<Block>();
  if (plan.block_ == nullptr) return unfit(id, "it must be loops straight around one block");
  const Block& block = *plan.block_;
  PRUNERC_TRY_VOID(Flow(program).find(block.id));
  for (const IterVar& iter : block.iters) {
    if (iter.kind == IterKind::kOpaque) return unfit(id, quoted(iter) + " is opaque");
  }
  if (block.guard.defined() && mentions_any(block.guard, plan.loops_)) {
    return unfit(id, "the guard depends on the loops inside");
  }
  plan.builder_ = std::make_unique<IrBuilder>(program);
  IrBuilder& b = *plan.builder_;
  VarRanges ranges = ranges_at(program, plan.site_);
  for (const Loop* loop : plan.loops_) {
    if (loop != plan.loops_[0]) ranges.bind(loop->var, loop->extent);
  }
  if (block.init.defined()) {
    PRUNERC_TRY_VOID(on_instance(program, [&] { return check_init(b, block, id, plan.loops_); }));
  }
  PRUNERC_TRY(plan.iters_, tile_iters(b, block, id, plan.loops_, plan.site_.outer_loops(), ranges));
  return plan;
}

Applied apply_blockize(const Program& program, const BlockizePlan& plan) {
  IrBuilder& b = plan.builder();
  const VarRanges domain(program.domain());
  const Block& block = plan.block();
  Applied out;
  out.outputs.push_back(block.id);
  VarMap body_map, init_map, init_vars;
  std::vector<const Loop*> init_loops;
  if (block.init.defined()) {
    for (const Loop* loop : plan.loops()) {
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
    const TiledIter& tiled = plan.iters()[i];
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
  for (const Loop* loop : plan.loops()) ranges.bind(loop->var, loop->extent);
  tile.body = map_exprs(b, substitute(b, block.body, body_map),
                        [&](Expr e) { return simplify(b, e, ranges); });
  for (std::size_t i = plan.loops().size(); i-- > 0;) {
    Loop copy = *plan.loops()[i];
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
  out.program = b.finish(replace_at(b, plan.site(), b.block(tile)));
  return out;
}

template <>
Result<Applied> run<PrimitiveKind::kBlockize>(const Program& program, const Call& call) {
  PRUNERC_TRY(const BlockizePlan plan, plan_blockize(program, call.loop(0)));
  return apply_blockize(program, plan);
}

}  // namespace prunerc::schedule
