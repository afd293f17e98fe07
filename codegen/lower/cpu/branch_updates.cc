// Updates that change nothing where a condition fails run behind the condition.
// Before: a sum adds select(c, x, 0), a maximum takes select(c, x, -inf), and so on. After: what of
// c no copy of a tile decides for itself stands in an If, so that hoist_guards can move it out of
// the tile or shorten a loop by it. (A sum that is -0 keeps its sign where 0 is not added.)
//     for k in 4 { for j in 8 vectorized { T[j] = T[j] + select(k < n && j < m, A[k, j], 0f32) } }
// ~>  for k in 4 { for j in 8 vectorized {
//       if k < n { T[j] = T[j] + select(j < m, A[k, j], 0f32) } } }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"

#include <vector>

namespace prunerc::codegen {
namespace {

using namespace ir;

class UpdateBranching {
 public:
  explicit UpdateBranching(const Program& program) : b_(program) {}

  Program run(const Program& program) { return b_.finish(go(program.root())); }

 private:
  Stmt go(Stmt s) {
    if (!s.defined()) return s;
    if (const Store* store = s.as<Store>()) return branched(*store);
    const Loop* loop = s.as<Loop>();
    const bool tile = loop != nullptr && is_tile_loop(*loop);
    if (tile) tile_vars_.push_back(loop->var->id);
    Stmt r = map_stmts(b_, s, [this](Stmt child) { return go(child); });
    if (tile) tile_vars_.pop_back();
    return r;
  }

  Stmt branched(const Store& store) {
    const Select* update = masked_update(b_, store);
    if (update == nullptr) return Stmt(&store);
    Expr outside, inside;
    for (Expr part : conjuncts(update->condition)) {
      const bool stays = has_load(part) || may_trap(part) || mentions(part, tile_vars_);
      (stays ? inside : outside) = conjunction(b_, stays ? inside : outside, part);
    }
    if (!outside.defined()) return Stmt(&store);
    const Expr value =
        inside.defined() ? b_.select(inside, update->on_true, update->on_false) : update->on_true;
    const BinaryNode& step = *as_binary(store.value);
    const Expr next = b_.binary(step.kind, step.lhs, value);
    return b_.if_then(outside, b_.store(store.buffer, store.indices, next));
  }

  IrBuilder b_;
  std::vector<VarId> tile_vars_;  // of the tile loops around
};

}  // namespace

Result<Program> branch_updates(const Program& program, const Target&) {
  return UpdateBranching(program).run(program);
}

}  // namespace prunerc::codegen
