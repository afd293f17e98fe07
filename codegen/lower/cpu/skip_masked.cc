// Tiles that a mask makes nothing of do not run.
// Before: blocks without an init run all their instances. After: instances of a block, tile by tile,
// have a guard that leaves out what a sum or maximum takes nothing from, and what is read nowhere
// but behind a condition that fails. (0*x counts as 0, also where x is infinite.)
//     for s in 64 { for t in 8 vectorized { block "Y" [vt: S(8) = t, vs: R(64) = s] {
//       Y[vt] = Y[vt] + select(vs <= vt, A[vt, vs], 0f32) } } }
// ~>  .. block "Y" [vt: S(8) = t, vs: R(64) = s] where s + -7 <= 0 { .. }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/analysis/masks/masks.h"
#include "ir/arith/simplify.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class MaskSkipping {
 public:
  explicit MaskSkipping(const Program& program) : b_(program), masks_(b_, program) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    if (const Block* block = s.as<Block>()) return guarded(*block);
    const Loop* loop = s.as<Loop>();
    if (loop == nullptr) return map_stmts(b_, s, [this](Stmt child) { return go(child); });
    const VarRanges::Mark mark = ranges_.mark();
    ranges_.bind(loop->var, loop->extent);
    const bool is_tile = is_tile_loop(*loop);
    const bool is_lane = loop->loop_kind == LoopKind::kVectorized;
    if (is_tile) tile_vars_.push_back(loop->var->id);
    if (is_lane) lane_vars_.push_back(loop->var->id);
    Stmt r = map_stmts(b_, s, [this](Stmt child) { return go(child); });
    if (is_lane) lane_vars_.pop_back();
    if (is_tile) tile_vars_.pop_back();
    ranges_.rewind(mark);
    return r;
  }

  Stmt guarded(const Block& block) {
    // What stands for an instruction stays as it is.
    if (any_loop(block.body, [](const Loop&) { return true; })) return Stmt(&block);
    Expr guard = block.guard;
    for (const Linear& condition : masks_.needed_where(block, !reduces_lanes(block))) {
      const std::optional<double> share = share_where(block, {&condition, 1});
      if (!share || *share > 1 - kLeastMaskedPart) continue;
      const Expr any = of_any_copy(block, condition);
      if (!any.defined() || may_trap(any)) continue;
      guard = guard.defined() ? b_.logical_and(guard, any) : any;
    }
    if (guard.is(block.guard)) return Stmt(&block);
    Block changed = block;
    changed.guard = guard;
    return b_.block(changed);
  }

  // Whether lanes are summed up: privatize_reductions wants no condition on such a sum.
  bool reduces_lanes(const Block& block) const {
    return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
      return iter.kind == IterKind::kReduce && mentions(iter.binding, lane_vars_);
    });
  }

  // Whether the condition holds for a copy of the tile; null if it does for all tiles, or if that is
  // not to be said in terms of the loops around.
  Expr of_any_copy(const Block& block, const Linear& condition) {
    VarMap bindings;
    for (const IterVar& iter : block.iters) bindings[iter.var->id] = iter.binding;
    const Linear bound = to_linear(b_, substitute(b_, to_expr(b_, condition), bindings), ranges_);
    const std::optional<Linear> least =
        eliminate_vars(b_, bound, Bound::kLower, ranges_, tile_vars_);
    if (!least || least->overflow) return {};
    const Expr value = to_expr(b_, *least);
    if (mentions(value, tile_vars_)) return {};
    const Expr any = simplify(b_, b_.le(value, b_.int_imm(0)), ranges_);
    const std::optional<int64_t> decided = constant_value(any);
    return decided && *decided != 0 ? Expr() : any;
  }

  IrBuilder b_;
  Masks masks_;
  VarRanges ranges_;
  std::vector<VarId> tile_vars_, lane_vars_;  // of the tile and the vectorized loops around
};

}  // namespace

Result<Program> skip_masked(const Program& program, const Target&) {
  return MaskSkipping(program).run(program);
}

}  // namespace prunerc::codegen
