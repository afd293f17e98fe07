// Loops over tiles begin and end where a mask hides the others from the whole block.
// Before: they run over all tiles. After: over those that some row of the block needs: an extent
// over block axes, so that threads meet as before. What is not computed then is read nowhere. (Y
// adds weights that are 0 behind the diagonal, and 16 places before it.)
//     for b in 8 bind(block.x) { for s in 8 { for t in 16 bind(thread.x) { block "Y" .. s .. } } }
// ~>  for b in 8 bind(block.x) { for s in b + 1 - max(0, b - 1) {
//       for t in 16 bind(thread.x) { block "Y" .. s + max(0, b - 1) .. } } }
#include "codegen/lower/analysis/statements.h"
#include "codegen/lower/passes.h"
#include "ir/analysis/masks/loop_trims.h"
#include "ir/map.h"

#include <map>

namespace prunerc::codegen {
namespace {

using namespace ir;

class LoopTrimming {
 public:
  explicit LoopTrimming(const Program& program)
      : b_(program), trims_(masked_loop_trims(b_, program)) {}

  Program run(const Program& program) {
    return trims_.empty() ? program : b_.finish(go(program.root()));
  }

 private:
  Stmt go(Stmt s) {
    if (!s.defined() || s.as<Block>() != nullptr) return s;
    Stmt r = map_stmts(b_, s, [&](Stmt child) { return go(child); });
    const Loop* loop = r.as<Loop>();
    const auto trim = loop != nullptr ? trims_.find(loop->id) : trims_.end();
    if (trim == trims_.end()) return r;
    Loop changed = *loop;
    changed.extent = trim->second.iterations;
    if (const Expr first = trim->second.first; first.defined()) {
      const VarMap shifted = {{loop->var->id, b_.add(Expr(loop->var), first)}};
      changed.body = substitute(b_, loop->body, shifted);
    }
    return b_.loop(changed);
  }

  IrBuilder b_;
  std::map<LoopId, LoopTrim> trims_;
};

}  // namespace

Result<Program> trim_masked_loops(const Program& program, const Target&) {
  return LoopTrimming(program).run(program);
}

}  // namespace prunerc::codegen
