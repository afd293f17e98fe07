// Rule "prepack": operands that are the same in every call are copied in blocks, once.
//
//     for i, j, k { C[i,j] += A[i,k] * W[k,j] }                                W const
//   ~>
//     for j, k { P[j // b, k, j % b] = W[k,j] }                                in the prologue
//     for i, j, k { C[i,j] += A[i,k] * P[j // b, k, j % b] }                   tiled as ever
//
// A tile then reads vectors that follow each other for the whole reduction, instead of a line from
// each of W's rows. The copy stands at the root and reads const inputs alone, so that code
// generation moves it into what runs once (codegen/hoist.h), and the analyzer leaves it out. The
// block of the tile still counts in j: what `//` and `%` hide is resolved when j has been cut.
// Source: packed panels as in GotoBLAS (Goto and van de Geijn, TOMS 34(3), 2008), section 5.
#include "search/space/sketch_rule/rule.h"

#include <cstddef>

namespace prunerc::search {

using ir::LoopId;
using schedule::Int;

std::vector<int> const_operands(const ir::Program& program, const ir::Block& block, ir::VarId var) {
  std::vector<int> found;
  for (std::size_t i = 0; i < block.reads.size(); ++i) {
    const ir::Access& access = block.reads[i];
    if (!program.buffer(access.buffer).is_const || !mentions(access, var)) continue;
    // One axis has no panels: it is read as it lies.
    if (num_long_dims(program, access) < 2) continue;
    if (!has_variable_subscripts(access)) return {};
    found.push_back(static_cast<int>(i));
  }
  return found;
}

namespace {

struct Blocking {
  std::string map;       // "(a0, a1, a2) -> (a1 // 16, a2, a1 % 16)"
  std::size_t loop = 0;  // of the copy, along the blocked variable
};

Blocking blocking_of(const ir::Block& block, const ir::Access& access, ir::VarId var,
                     int64_t size) {
  Blocking out;
  std::string from, rest;
  std::string blocked;
  std::size_t num_used = 0;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    const std::string name = "a" + std::to_string(i);
    from += (from.empty() ? "" : ", ") + name;
    const ir::VarId own = block.iters[i].var->id;
    if (!mentions(access, own)) continue;
    if (own == var) {
      blocked = name;
      out.loop = num_used;
    } else {
      rest += name + ", ";
    }
    ++num_used;
  }
  const std::string by = std::to_string(size);
  out.map =
      "(" + from + ") -> (" + blocked + " // " + by + ", " + rest + blocked + " % " + by + ")";
  return out;
}

// Once, but of megabytes: in parallel, whole vectors to where they will be read.
Result<void> schedule_copy(SketchContext& context, ir::BlockId copy, std::size_t blocked,
                           int64_t lanes) {
  const std::vector<LoopId> loops = context.schedule.loops_of(copy);
  if (blocked >= loops.size()) {
    return error(Diag::kUnsupported, std::string("a copy of this operand"));
  }
  PRUNERC_TRY(const std::vector<LoopId> parts,
              context.schedule.split(loops[blocked], {Int(-1), Int(lanes)}));
  std::vector<LoopId> order = {parts[0]};
  for (std::size_t i = 0; i < loops.size(); ++i) {
    if (i != blocked) order.push_back(loops[i]);
  }
  order.push_back(parts[1]);
  PRUNERC_TRY_VOID(context.schedule.reorder(order));
  PRUNERC_TRY_VOID(context.schedule.vectorize(parts[1]));
  order.pop_back();
  PRUNERC_TRY_VOID(parallelize(context, {order[0]}));
  return {};
}

}  // namespace

Result<void> prepack(SketchContext& context, ir::BlockId block, const std::vector<int>& reads,
                     ir::VarId var, int64_t block_size, int64_t lanes) {
  // By number: the block changes with the first copy, the other reads keep their places.
  for (const int read : reads) {
    const ir::Block* const now = find_block(context.program(), block);
    const Blocking blocking =
        blocking_of(*now, now->reads[static_cast<std::size_t>(read)], var, block_size);
    PRUNERC_TRY(const ir::BlockId copy,
                context.schedule.reindex_cache_read(block, read, ir::Scope::kGlobal, blocking.map));
    PRUNERC_TRY_VOID(schedule_copy(context, copy, blocking.loop, lanes));
  }
  return {};
}

}  // namespace prunerc::search
