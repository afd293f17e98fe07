#include "schedule/legality/canonical_nest.h"

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

std::string canonical_nest_fault(const Program& program, const LeafBlock& leaf) {
  const Block& block = *leaf.block;
  if (block.guard.defined()) return "its instances are guarded";
  if (leaf.loops.size() != block.iters.size()) return "it has other loops than variables";
  for (const IterVar& iter : block.iters) {
    const Var* var = iter.binding.as<Var>();
    bool bound = false;
    for (const Loop* loop : leaf.loops) {
      bound |= var != nullptr && loop->var->id == var->id && constant(loop->extent) &&
               constant(loop->extent) == constant(iter.extent);
    }
    if (!bound) return "variable '" + std::string(iter.var->name) + "' is not one loop";
  }
  for (std::size_t i = 0; i < leaf.loops.size(); ++i) {
    if (!check_serial(*leaf.loops[i]).ok()) return "its loops are not plain";
    const Stmt inside = leaf.loops[i]->body;
    const bool straight =
        i + 1 < leaf.loops.size() ? inside.is(Stmt(leaf.loops[i + 1])) : inside.is(Stmt(&block));
    if (!straight) return "other statements share its loops";
    for (std::size_t k = 0; k < i; ++k) {
      if (leaf.loops[k]->var->id == leaf.loops[i]->var->id) return "its loops share a variable";
    }
  }
  const Stmt top = top_of(leaf);
  bool outermost = program.root().is(top);
  if (const Seq* seq = program.root().as<Seq>()) {
    for (Stmt child : seq->stmts) outermost |= child.is(top);
  }
  return outermost ? "" : "it stands inside another statement";
}

Stmt top_of(const LeafBlock& leaf) {
  return leaf.loops.empty() ? Stmt(leaf.block) : Stmt(leaf.loops[0]);
}

}  // namespace prunerc::schedule
