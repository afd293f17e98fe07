#include "ir/canonical.h"

#include "ir/equal.h"
#include "ir/map.h"
#include "ir/parser.h"
#include "ir/printer.h"
#include "ir/support/check.h"
#include "ir/visit.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

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

bool same_parameters(const Program& a, const Program& b) {
  const std::span<const BufferId> ours = a.params(), theirs = b.params();
  if (ours.size() != theirs.size()) return false;
  for (std::size_t i = 0; i < ours.size(); ++i) {
    const Buffer& one = a.buffer(ours[i]);
    const Buffer& other = b.buffer(theirs[i]);
    if (one.dtype != other.dtype || one.role != other.role || one.is_const != other.is_const ||
        one.shape.size() != other.shape.size()) {
      return false;
    }
    for (std::size_t d = 0; d < one.shape.size(); ++d) {
      if (!structural_equal(one.shape[d], other.shape[d])) return false;
    }
  }
  return true;
}

Program with_names_of(const Program& program, const Program& of) {
  PRUNERC_CHECK(same_parameters(program, of), "names go from parameter to parameter");
  const auto arena = std::make_shared<Arena>(program.arena());
  std::vector<Buffer> buffers(program.buffers().begin(), program.buffers().end());
  std::set<std::string> used;
  for (std::size_t i = 0; i < of.params().size(); ++i) {
    const std::string name(of.buffer(of.params()[i]).name);
    used.insert(name);
    buffers[static_cast<std::size_t>(program.params()[i].value)].name =
        arena->copy(std::string_view(name));
  }
  for (Buffer& buffer : buffers) {
    if (buffer.role != BufferRole::kIntermediate) continue;
    std::string name(buffer.name);
    while (!used.insert(name).second) name += '_';
    buffer.name = arena->copy(std::string_view(name));
  }
  ProgramNode node;
  node.name = arena->copy(of.name());
  node.buffers = arena->copy(std::span<const Buffer>(buffers));
  node.params = program.params();
  node.domain = program.domain();
  node.root = program.root();
  node.next = program.next_ids();
  return Program(arena->make<ProgramNode>(node), arena);
}

}  // namespace prunerc::ir
