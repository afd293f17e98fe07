#include "ir/analysis/dependence.h"

#include "ir/arith/iter_map.h"
#include "ir/visit.h"

#include <algorithm>
#include <map>

namespace prunerc::ir {
namespace {

constexpr std::string_view kFaultNames[] = {
    "none",
    "no such block",
    "an iteration is not spatial",
    "not the only writer of its outputs",
    "reads what it writes",
    "no init",
    "bindings not affine",
    "an iteration is opaque",
    "outputs depend on a reduction",
    "writes intermediates only",
    "reads what is not written before",
    "cannot prove that its reads are written before",
    "an earlier block reads what it overwrites",
    "a statement is no loop, block or sequence",
};

bool accesses_buffer(std::span<const Access> accesses, BufferId buffer) {
  return std::any_of(accesses.begin(), accesses.end(),
                     [&](const Access& a) { return a.buffer == buffer; });
}

bool is_sole_writer(std::span<const Block* const> blocks, const Block& block) {
  return std::none_of(blocks.begin(), blocks.end(), [&](const Block* other) {
    return other->id != block.id &&
           std::any_of(block.writes.begin(), block.writes.end(),
                       [&](const Access& a) { return accesses_buffer(other->writes, a.buffer); });
  });
}

BlockFault complete_fault(std::span<const Block* const> scope, const Block& block) {
  for (const IterVar& iter : block.iters) {
    if (iter.kind != IterKind::kSpatial) return BlockFault::kNotSpatial;
  }
  if (!is_sole_writer(scope, block)) return BlockFault::kNotDominant;
  for (const Access& a : block.writes) {
    if (accesses_buffer(block.reads, a.buffer)) return BlockFault::kReadsOwnWrites;
  }
  return BlockFault::kNone;
}

bool writes_depend_on_reduction(const Block& block) {
  const auto is_reduction_var = [&](Expr x) {
    const Var* v = x.as<Var>();
    return v != nullptr &&
           std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
             return iter.kind == IterKind::kReduce && iter.var->id == v->id;
           });
  };
  bool found = false;
  for (const Access& a : block.writes) {
    for (const Range& range : a.region) {
      for (Expr e : {range.min, range.extent}) {
        walk(e, [&](Expr x) {
          found = found || is_reduction_var(x);
          return !found;
        });
      }
    }
  }
  return found;
}

BlockFault reduction_fault(const Program& program, const LoopIndex& index,
                           std::span<const Block* const> scope, const Block& block) {
  if (!block.init.defined()) return BlockFault::kNoInit;
  for (const IterVar& iter : block.iters) {
    if (iter.kind == IterKind::kOpaque) return BlockFault::kOpaqueIter;
  }
  if (!is_sole_writer(scope, block)) return BlockFault::kNotDominant;
  if (writes_depend_on_reduction(block)) return BlockFault::kReduceIndexesOutput;
  return check_affine(program, index, block.id);
}

std::vector<const Block*> siblings(const LoopIndex& index, BlockId block) {
  const Block* outer = index.parent_block(block);
  return index.child_blocks(outer == nullptr ? BlockId() : outer->id);
}

template <typename T>
void add_once(std::vector<T>& list, const T& value) {
  if (std::find(list.begin(), list.end(), value) == list.end()) list.push_back(value);
}

}  // namespace

std::string_view to_string(BlockFault fault) {
  return kFaultNames[static_cast<std::size_t>(fault)];
}

std::vector<BlockId> ScopeDeps::producers(BlockId block) const {
  std::vector<BlockId> out;
  for (const DepEdge& e : edges) {
    if (e.to == block && e.kind == DepKind::kReadAfterWrite) add_once(out, e.from);
  }
  return out;
}

std::vector<BlockId> ScopeDeps::consumers(BlockId block) const {
  std::vector<BlockId> out;
  for (const DepEdge& e : edges) {
    if (e.from == block && e.kind == DepKind::kReadAfterWrite) add_once(out, e.to);
  }
  return out;
}

std::vector<BlockId> ScopeDeps::writers(BufferId buffer) const {
  std::vector<BlockId> out;
  for (const Write& w : writes) {
    if (w.buffer == buffer) out.push_back(w.block);
  }
  return out;
}

ScopeDeps scope_dependences(const LoopIndex& index, BlockId scope) {
  ScopeDeps deps;
  deps.scope = scope;
  struct Users {
    std::vector<BlockId> writers, readers;
  };
  std::map<BufferId, Users> users;
  for (const Block* block : index.child_blocks(scope)) {
    deps.blocks.push_back(block->id);
    std::vector<BufferId> reads;
    std::vector<BufferId> writes;
    for (const Access& a : block->reads) add_once(reads, a.buffer);
    for (const Access& a : block->writes) add_once(writes, a.buffer);
    for (BufferId buffer : reads) {
      for (BlockId from : users[buffer].writers) {
        deps.edges.push_back({from, block->id, buffer, DepKind::kReadAfterWrite});
      }
    }
    for (BufferId buffer : writes) {
      for (BlockId from : users[buffer].writers) {
        deps.edges.push_back({from, block->id, buffer, DepKind::kWriteAfterWrite});
      }
      for (BlockId from : users[buffer].readers) {
        deps.edges.push_back({from, block->id, buffer, DepKind::kWriteAfterRead});
      }
    }
    for (BufferId buffer : reads) users[buffer].readers.push_back(block->id);
    for (BufferId buffer : writes) {
      users[buffer].writers.push_back(block->id);
      deps.writes.push_back({buffer, block->id});
    }
  }
  return deps;
}

BlockFault check_dominant(const LoopIndex& index, BlockId block) {
  const Block* b = index.block(block);
  if (b == nullptr) return BlockFault::kUnknownBlock;
  return is_sole_writer(siblings(index, block), *b) ? BlockFault::kNone : BlockFault::kNotDominant;
}

BlockFault check_complete(const LoopIndex& index, BlockId block) {
  const Block* b = index.block(block);
  return b == nullptr ? BlockFault::kUnknownBlock : complete_fault(siblings(index, block), *b);
}

BlockFault check_reduction(const Program& program, const LoopIndex& index, BlockId block) {
  const Block* b = index.block(block);
  if (b == nullptr) return BlockFault::kUnknownBlock;
  return reduction_fault(program, index, siblings(index, block), *b);
}

BlockFault check_output(const Program& program, const LoopIndex& index, BlockId block) {
  const Block* b = index.block(block);
  if (b == nullptr) return BlockFault::kUnknownBlock;
  const bool found = std::any_of(b->writes.begin(), b->writes.end(), [&](const Access& a) {
    return program.buffer(a.buffer).role != BufferRole::kIntermediate;
  });
  return found ? BlockFault::kNone : BlockFault::kNotOutput;
}

BlockFault check_affine(const Program& program, const LoopIndex& index, BlockId block) {
  const Block* target = index.block(block);
  if (target == nullptr) return BlockFault::kUnknownBlock;
  const std::vector<const Loop*> loops = index.enclosing_loops(block);
  if (loops.empty()) return BlockFault::kNone;
  IrBuilder scratch(program);
  const VarRanges ranges = ranges_around(program, index, block);
  return affine_binding(scratch, *target, loops, ranges).ok() ? BlockFault::kNone
                                                              : BlockFault::kNotAffine;
}

}  // namespace prunerc::ir
