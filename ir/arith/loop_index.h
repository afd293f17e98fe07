// Where every loop and block of one Program stands: parents, positions, children.
#ifndef PRUNERC_IR_ARITH_LOOP_INDEX_H_
#define PRUNERC_IR_ARITH_LOOP_INDEX_H_

#include "ir/arith/interval.h"
#include "ir/program.h"

#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::ir {

/// Parent and position table of one version of a program. Borrows from it; look-ups of absent ids
/// give null or -1. Cost: O(number of statements) to make, O(1) per look-up.
class LoopIndex {
 public:
  explicit LoopIndex(const Program& program);
  /// A table of one statement taken as the root.
  explicit LoopIndex(Stmt root);

  const Loop* loop(LoopId id) const;
  const Block* block(BlockId id) const;
  /// First block of that name in program order; null if none.
  const Block* block(std::string_view name) const;

  /// All blocks and loops in program order (an outer one before what it holds).
  std::span<const Block* const> blocks() const { return blocks_; }
  std::span<const Loop* const> loops() const { return loops_; }

  /// Statement that directly holds this one (Loop, Block, Seq, If, Alloc); null at the root or if
  /// unknown.
  Stmt parent(LoopId id) const;
  Stmt parent(BlockId id) const;
  /// Position among the statements of the same sequence; 0 outside a Seq; -1 if unknown.
  int position(LoopId id) const;
  int position(BlockId id) const;
  /// Place in program order of all loops and blocks together; -1 if unknown.
  int order(LoopId id) const;
  int order(BlockId id) const;

  /// Loops around a block or loop (itself not included), outermost first, up to the block that
  /// encloses them.
  std::vector<const Loop*> enclosing_loops(BlockId id) const;
  std::vector<const Loop*> enclosing_loops(LoopId id) const;
  /// The block in whose body this one stands; null if none.
  const Block* parent_block(BlockId id) const;
  const Block* parent_block(LoopId id) const;

  /// Blocks whose parent block is `id`, in program order; an invalid id gives the outermost blocks.
  std::vector<const Block*> child_blocks(BlockId id) const;
  /// Blocks anywhere inside a loop (not inside another block of that loop), in program order.
  std::vector<const Block*> blocks_under(LoopId id) const;
  /// Innermost loop around both blocks (within one block scope); null if none.
  const Loop* lowest_common_loop(BlockId a, BlockId b) const;

 private:
  struct Entry {
    Stmt stmt;           // a Loop or a Block; null: no such id
    Stmt parent;         // statement that directly holds it
    int32_t outer = -1;  // entry of the next enclosing loop or block
    int32_t position = 0;
    int32_t end = 0;  // entries [own index, end) stand inside
  };
  void add(Stmt s, Stmt parent, int32_t outer, int32_t position);
  const Entry* find(LoopId id) const;
  const Entry* find(BlockId id) const;
  int32_t entry_of(LoopId id) const;
  int32_t entry_of(BlockId id) const;
  std::vector<const Loop*> loops_around(int32_t entry) const;
  const Block* block_around(int32_t entry) const;

  std::vector<Entry> entries_;          // in program order
  std::vector<int32_t> loop_entries_;   // by LoopId
  std::vector<int32_t> block_entries_;  // by BlockId
  std::vector<const Block*> blocks_;
  std::vector<const Loop*> loops_;
};

/// Ranges of the loops around a block (all levels, outer blocks' iteration variables included) and,
/// as facts, the conditions and guards on the way. The block's own guard and iteration variables
/// are not added.
VarRanges ranges_around(const Program& program, const LoopIndex& index, BlockId block);
/// The same for the position just inside a loop.
VarRanges ranges_inside(const Program& program, const LoopIndex& index, LoopId loop);
/// Adds the ranges of a block's iteration variables.
void bind_iters(VarRanges& ranges, const Block& block);
/// These alone.
VarRanges ranges_of(const Block& block);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ARITH_LOOP_INDEX_H_
