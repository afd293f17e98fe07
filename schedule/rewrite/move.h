// A block moves under a loop, into loops of its own: what compute_at and reverse_compute_at share.
#ifndef PRUNERC_SCHEDULE_REWRITE_MOVE_H_
#define PRUNERC_SCHEDULE_REWRITE_MOVE_H_

#include "schedule/legality/dataflow.h"
#include "schedule/legality/iter_domain.h"
#include "schedule/primitive.h"

#include <cstdint>
#include <vector>

namespace prunerc::schedule {

/// Where the block goes in the loop's body: a producer before the first statement that reads what
/// it writes, a consumer after the last one that writes what it reads.
enum class Direction : uint8_t { kProducer, kConsumer };

/// The block gets one new loop per iteration variable. Reduction variables, and variables that no
/// subscript of the form `var + constant` ties down, run over their whole extent. Where an interval
/// may leave the iteration domain, a guard cuts it. Cost: O(accesses of the blocks involved).
class Move {
 public:
  Move(const ir::Program& program, Direction direction)
      : program_(program), dataflow_(program), direction_(direction), builder_(program) {}
  virtual ~Move() = default;

  /// For both: the block stands in no other block, may be repeated and reordered, covers its
  /// iteration domain, is the sole writer of what it writes, and its sources have final values. In
  /// the new place each source is covered by writes of the same iteration of the loops shared with
  /// its writer, none of which is a reduction loop of that writer.
  Result<Applied> run(ir::BlockId block, ir::LoopId loop);

 protected:
  /// The readers or writers of the block are where the move needs them.
  virtual Result<void> check_neighbours() = 0;
  /// Where the block's variables run in the new place.
  virtual Result<std::vector<IterRange>> iter_ranges() = 0;

  Result<void> find(ir::BlockId block, ir::LoopId loop);
  /// Hull of what the blocks under the loop do to a buffer, in terms of the loops around the new
  /// place; false if they do not touch it.
  enum class Touches : uint8_t { kReads, kWrites };
  bool box_under_loop(ir::BufferId buffer, Touches touches, ir::BufferRegion* out);

  /// Subscripts whose instances only numbers tell (IterRange::by_map) make no program with tile
  /// parameters. Errors: ParamOperand.
  Result<void> check_open(const std::vector<IterRange>& of_witness) const;

  ir::IrBuilder& b() { return builder_; }
  const LeafBlock& block() const { return dataflow_[place_]; }
  ir::LoopId loop() const { return loop_site_.loop()->id; }

  const ir::Program& program_;
  Dataflow dataflow_;
  std::vector<const ir::Loop*> outer_;  // around the new place, the target included
  std::size_t place_ = 0;
  Dataflow::Span span_;   // blocks under the loop
  ir::VarRanges ranges_;  // of the loops around the new place

 private:
  void find_neighbour();
  void build(const std::vector<IterRange>& iter_ranges);
  Result<void> check_covered();
  bool covered_by(const LeafBlock& writer, const ir::Access& read, std::size_t shared);
  Result<void> plan(ir::BlockId block, ir::LoopId loop);
  Applied apply();

  Direction direction_;
  ir::IrBuilder builder_;
  Site block_site_;
  Site loop_site_;
  std::vector<ir::LoopId> concurrent_;  // of outer_: parallel loops and thread axes
  ir::Stmt neighbour_;
  ir::Stmt nest_;
  std::vector<ir::LoopId> new_loops_;
  LeafBlock moved_;  // the block in its new place, with all loops
};

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_MOVE_H_
