// Blocks become their bodies: iteration variables their bindings, guards conditions.
// Before: no block has an init. After: there are no blocks, only loops, conditions, stores, Allocs.
//     for i in 3 { for j in 4 {
//       block "T" [v: S(10) = i*4 + j] where i*4 + j < 10 { T[v] = A[v] } } }
// ~>  for i in 3 { for j in 4 { if i*4 + j < 10 { T[i*4 + j] = A[i*4 + j] } } }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"

namespace prunerc::codegen {
namespace {

using namespace ir;

Stmt go(IrBuilder& b, Stmt s) {
  if (!s.defined()) return s;
  if (const Block* block = s.as<Block>()) {
    PRUNERC_CHECK(!block->init.defined(), "lower_init has run");
    VarMap bindings;
    for (const IterVar& iter : block->iters) bindings[iter.var->id] = iter.binding;
    // Outer variables are replaced first by the caller: it substitutes into this block as a whole.
    Stmt body = go(b, substitute(b, block->body, bindings));
    return block->guard.defined() && body.defined() ? b.if_then(block->guard, body) : body;
  }
  return map_stmts(b, s, [&](Stmt child) { return go(b, child); });
}

}  // namespace

Result<Program> lower_blocks(const Program& program, const Target&) {
  IrBuilder b(program);
  Stmt root = go(b, program.root());
  return b.finish(root);
}

}  // namespace prunerc::codegen
