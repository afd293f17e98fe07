// The outermost blocks of a program in order, and who writes and reads what: the ground on which
// blocks are moved.
#ifndef PRUNERC_SCHEDULE_LEGALITY_DATAFLOW_H_
#define PRUNERC_SCHEDULE_LEGALITY_DATAFLOW_H_

#include "ir/analysis/carried.h"
#include "ir/builder.h"
#include "schedule/rewrite/site.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace prunerc::schedule {

/// Borrows from the program.
class Dataflow {
 public:
  explicit Dataflow(const ir::Program& program)
      : program_(program), blocks_(leaves(program.root())) {}

  const ir::Program& program() const { return program_; }
  /// Outermost blocks in execution order, with all loops around.
  const std::vector<LeafBlock>& blocks() const { return blocks_; }
  const LeafBlock& operator[](std::size_t i) const { return blocks_[i]; }

  /// Place of a block that stands in no other block, holds none, and has only loops and sequences
  /// around. Errors: BlockNotFound, BlockNested, BlockUnderIf.
  Result<std::size_t> find(ir::BlockId id) const;
  std::vector<std::size_t> writers(ir::BufferId buffer) const;
  std::vector<std::size_t> readers(ir::BufferId buffer) const;
  /// Places [first, last) of the blocks under a loop.
  struct Span {
    std::size_t first = 0;
    std::size_t last = 0;
  };
  Span under(ir::LoopId loop) const;
  /// Do both blocks stand in the same outermost statement?
  bool same_statement(std::size_t x, std::size_t y) const;

 private:
  const ir::Program& program_;
  std::vector<LeafBlock> blocks_;
};

/// The buffer's name as diagnostics say it: 'T'.
std::string quoted_name(const ir::Program& program, ir::BufferId buffer);

bool reads(const ir::Block& block, ir::BufferId buffer);
bool writes(const ir::Block& block, ir::BufferId buffer);
/// Number of loops that both stand under.
std::size_t shared_loops(const std::vector<const ir::Loop*>& x,
                         const std::vector<const ir::Loop*>& y);
/// Does the loop's variable feed a reduction variable of the block?
bool feeds_reduction(const ir::Loop& loop, const ir::Block& block);

/// Do the block's instances reach every point of its iteration domain when `leaf.loops` run? No if
/// it is not proved.
bool covers_domain(ir::IrBuilder& b, const ir::Program& program, const LeafBlock& leaf);

/// `block` is the only writer of each buffer that it writes. Errors: BufferManyWriters.
Result<void> check_sole_writer(const Dataflow& flow, std::size_t block);
/// What an access touches while `inner` run in one iteration of `chain`, for `share_element`.
ir::Touch touch_of(ir::IrBuilder& b, const LeafBlock& leaf, const ir::Access& access,
                   std::span<const ir::Loop* const> chain, std::span<const ir::Loop* const> inner);
/// Enough for what elimination leaves open in practice; a refusal costs as much as an answer.
inline constexpr ir::ProveOptions kTouchEffort = {.max_points = 5'000};

/// Whether a writer that shares the most loops with the reader is known to make, in each of their
/// iterations, all that is read there.
enum class Covered : uint8_t { kNotAsked, kByDeepest };

/// After its writers of each iteration, a reader below the loops (which need not be those around it
/// now) finds final values there: no loop shared with a writer carries a reduction of it, and what
/// different iterations write to one element is the same. Errors: SourceOverwritten,
/// ReductionNotFinished, BlockOrderFixed.
Result<void> check_final_below(ir::IrBuilder& b, const Dataflow& flow, std::size_t reader,
                               const std::vector<const ir::Loop*>& loops, Covered covered);

/// What the block reads has its final value where the block stands, and keeps it. Errors: as before.
Result<void> check_sources_final(ir::IrBuilder& b, const Dataflow& flow, std::size_t block);
/// Instances may be repeated and reordered, and cover the whole iteration domain. Errors:
/// BlockOrderFixed, BlockNoInit, BlockNotSimple.
Result<void> check_movable(ir::IrBuilder& b, const Dataflow& flow, std::size_t block);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_DATAFLOW_H_
