#include "codegen/lower/lower.h"
#include "ir/map.h"
#include "ir/visit.h"

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
  return map_children(
      b, s, [&](Stmt child) { return go(b, child); }, [](Expr e) { return e; });
}

}  // namespace

Result<Program> lower_blocks(const Program& program, const Target&) {
  IrBuilder b(program);
  Stmt root = go(b, program.root());
  return b.finish(root);
}

}  // namespace prunerc::codegen
