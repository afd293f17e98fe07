// Block-level dependences and the properties of blocks that schedule primitives require.
#ifndef PRUNERC_IR_ANALYSIS_DEPENDENCE_H_
#define PRUNERC_IR_ANALYSIS_DEPENDENCE_H_

#include "ir/arith/loop_index.h"
#include "ir/arith/prove.h"
#include "ir/program.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace prunerc::ir {

enum class DepKind : uint8_t { kReadAfterWrite, kWriteAfterWrite, kWriteAfterRead };

/// `from` stands before `to` in one scope and both touch `buffer`.
struct DepEdge {
  BlockId from, to;
  BufferId buffer;
  DepKind kind = DepKind::kReadAfterWrite;
  bool operator==(const DepEdge&) const = default;
};

/// Dependences among the child blocks of one block (or of the program's root), at whole-buffer
/// granularity, in program order; never a self edge. Loop-carried dependences show as failed region
/// cover.
struct ScopeDeps {
  BlockId scope;  // invalid: the root
  std::vector<BlockId> blocks;
  std::vector<DepEdge> edges;

  /// Blocks that `block` reads from / that read what it writes; without repetition, in program
  /// order.
  std::vector<BlockId> producers(BlockId block) const;
  std::vector<BlockId> consumers(BlockId block) const;
  /// Writers of a buffer among the scope's blocks.
  std::vector<BlockId> writers(BufferId buffer) const;

  struct Write {
    BufferId buffer;
    BlockId block;
  };
  std::vector<Write> writes;  // in program order
};
/// `scope` invalid: the blocks without a parent block.
/// Cost: O(accesses^2 of the scope) at worst, linear for chains.
ScopeDeps scope_dependences(const LoopIndex& index, BlockId scope);

/// Why a block or scope lacks a property; kNone: it has it.
enum class BlockFault : uint8_t {
  kNone,
  kUnknownBlock,
  kNotSpatial,           // complete: an iteration variable is not spatial
  kNotDominant,          // another block of the scope writes one of its buffers
  kReadsOwnWrites,       // complete: a buffer is both read and written
  kNoInit,               // reduction: no init
  kNotAffine,            // the bindings are not an affine map of the loops
  kOpaqueIter,           // reduction: an iteration variable is opaque
  kReduceIndexesOutput,  // reduction: a written region depends on a reduction variable
  kNotOutput,            // writes intermediates only
  kNotCovered,           // region cover: a read is not covered by the writes before it
  kCoverUnknown,         // region cover: not proved
  kWriteAfterRead,       // stage pipeline: a later block overwrites what an earlier one reads
  kOpaqueStatement,      // stage pipeline: a statement of the scope is no loop, block or sequence
};
std::string_view to_string(BlockFault fault);

/// Sole writer, in its scope, of each buffer that it writes.
BlockFault check_dominant(const LoopIndex& index, BlockId block);
/// All iterations spatial, dominant, reads and writes disjoint by buffer.
BlockFault check_complete(const LoopIndex& index, BlockId block);
/// Has an init, affine bindings, spatial and reduction iterations only, dominant, written regions
/// free of reduction variables.
BlockFault check_reduction(const Program& program, const LoopIndex& index, BlockId block);
/// Writes at least one parameter of the program.
BlockFault check_output(const Program& program, const LoopIndex& index, BlockId block);
/// The loops around a block form an affine map (iter_map.h); no loops: yes.
BlockFault check_affine(const Program& program, const LoopIndex& index, BlockId block);

/// What `consumer` reads of intermediates is written before it in every iteration of the loops that
/// it shares with its producers. kNone, kNotCovered or kCoverUnknown.
BlockFault check_region_cover(const Program& program, const LoopIndex& index, BlockId consumer);
/// Region cover for all children, no write-after-read, only loops, blocks and sequences.
BlockFault check_stage_pipeline(const Program& program, const LoopIndex& index, BlockId scope);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_DEPENDENCE_H_
