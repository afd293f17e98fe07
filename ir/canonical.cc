#include "ir/canonical.h"

#include "ir/map.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/support/check.h"
#include "ir/visit.h"

namespace prunerc::ir {
namespace {

// Loops and blocks take numbers on the way down, so that an outer one comes before what it holds.
class Numbering {
 public:
  explicit Numbering(IrBuilder& b) : b_(b) {}

  Stmt run(Stmt s) {
    if (const Loop* loop = s.as<Loop>()) {
      Loop copy = *loop;
      copy.id = LoopId(next_.loop++);
      in_order_ = in_order_ && copy.id == loop->id;
      copy.body = run(loop->body);
      return b_.loop(copy);
    }
    if (const Block* block = s.as<Block>()) {
      Block copy = *block;
      copy.id = BlockId(next_.block++);
      in_order_ = in_order_ && copy.id == block->id;
      if (block->init.defined()) copy.init = run(block->init);
      copy.body = run(block->body);
      return b_.block(copy);
    }
    return map_children(
        b_, s, [&](Stmt child) { return run(child); }, [](Expr e) { return e; });
  }

  bool was_in_order(IdCounters counters) const {
    return in_order_ && counters.loop == next_.loop && counters.block == next_.block;
  }

 private:
  IrBuilder& b_;
  IdCounters next_;
  bool in_order_ = true;
};

}  // namespace

Program renumber(const Program& program) {
  if (!program.root().defined()) return program;
  IrBuilder b(program);
  Numbering numbering(b);
  const Stmt root = numbering.run(program.root());
  if (numbering.was_in_order(program.next_ids())) return program;
  // The builder's counters only grow; those of a text start after its ids.
  Result<Program> fresh = parse(print(b.finish(root)));
  PRUNERC_CHECK(fresh.ok(), "what is printed parses");
  return std::move(fresh).value();
}

}  // namespace prunerc::ir
