// Schedule: a program, the primitives that rewrite it, and the trace of those applied.
#ifndef PRUNERC_SCHEDULE_SCHEDULE_H_
#define PRUNERC_SCHEDULE_SCHEDULE_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/support/rng.h"
#include "schedule/trace/trace.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace prunerc::schedule {

/// Whether every new program is checked by ir::verify (tests) or trusted (search).
enum class Verify : uint8_t { kNever, kEachStep };

/// A program and how it came about. A value: copies share the program and are independent
/// afterwards. A primitive that fails leaves program and trace as they were. Threads: one Schedule
/// belongs to one thread at a time.
class Schedule {
 public:
  explicit Schedule(ir::Program program, Verify verify = Verify::kNever)
      : program_(std::move(program)), verify_(verify) {}

  const ir::Program& program() const { return program_; }
  const Trace& trace() const { return trace_; }
  Schedule fork() const { return *this; }

  // Queries. An unknown id gives an empty answer.
  /// Loops around the block, outermost first.
  std::vector<ir::LoopId> loops_of(ir::BlockId block) const;
  /// Every block, in execution order; an enclosing block comes before those inside it.
  std::vector<ir::BlockId> blocks() const;
  /// Blocks that write what `block` reads / read what `block` writes, in execution order, without
  /// `block` itself.
  std::vector<ir::BlockId> producers(ir::BlockId block) const;
  std::vector<ir::BlockId> consumers(ir::BlockId block) const;
  /// Errors: BlockNotFound, BlockNameAmbiguous.
  Result<ir::BlockId> block_by_name(std::string_view name) const;

  // Loop structure.
  /// Loops of the given extents, outermost first; one factor may be -1 (inferred, rounded up).
  /// Guards the tail.
  Result<std::vector<ir::LoopId>> split(ir::LoopId loop, std::vector<Int> factors);
  /// One loop for a chain of nested loops, outermost first.
  Result<ir::LoopId> fuse(std::vector<ir::LoopId> loops);
  /// The named loops of one chain take this order; loops between them stay.
  Result<void> reorder(std::vector<ir::LoopId> loops);

  /// Consecutive loops of the given sizes, one of which may be -1 (the rest), for one loop.
  Result<std::vector<ir::LoopId>> loop_partition(ir::LoopId loop, std::vector<Int> sizes);
  /// One loop for loops of one extent that follow each other, with their bodies in that order.
  Result<ir::LoopId> merge(std::vector<ir::LoopId> loops);
  /// A loop of one iteration around a loop or block.
  Result<ir::LoopId> add_unit_loop(ir::LoopId loop);
  Result<ir::LoopId> add_unit_loop(ir::BlockId block);
  /// The block declares its variables in another order: position i takes the old order[i].
  Result<void> reorder_block_iter_var(ir::BlockId block, const std::vector<int64_t>& order);

  // Loop kinds.
  Result<void> parallel(ir::LoopId loop);
  Result<void> vectorize(ir::LoopId loop);
  Result<void> unroll(ir::LoopId loop);
  /// Axis of a kernel launch: "block.x" .. "vthread.z". A reduction loop can be a thread.* only.
  Result<void> bind(ir::LoopId loop, std::string_view axis);
  /// Statement c of the loop's body may run stages[c] iterations late, at place orders[c].
  Result<void> software_pipeline(ir::LoopId loop, std::vector<Int> stages,
                                 const std::vector<int64_t>& orders);

  // Where and whether a block is computed. The moves return the block's new loops below `loop`, one
  // per iteration variable whatever their extents, outermost first.
  Result<std::vector<ir::LoopId>> compute_at(ir::BlockId block, ir::LoopId loop);
  Result<std::vector<ir::LoopId>> reverse_compute_at(ir::BlockId block, ir::LoopId loop);
  Result<void> compute_inline(ir::BlockId block);
  Result<void> reverse_compute_inline(ir::BlockId block);
  /// By a code of compute_locations: -2 inlines, -1 leaves the block where it is, k computes it at
  /// the k-th loop around its first consumer.
  Result<void> compute_at_location(ir::BlockId block, Int location);
  /// Codes of the places where the block can be computed now; -1 is always one of them.
  std::vector<int64_t> compute_locations(ir::BlockId block) const;

  // Caches: a full-shape buffer and a copy block at the outermost level, to be moved by
  // (reverse_)compute_at.
  /// Block reads its `read_idx`-th read buffer through a copy in `scope`; returns the copy block.
  Result<ir::BlockId> cache_read(ir::BlockId block, int read_idx, ir::Scope scope);
  /// Block writes its `write_idx`-th written buffer through a copy in `scope`; returns the copy-out
  /// block.
  Result<ir::BlockId> cache_write(ir::BlockId block, int write_idx, ir::Scope scope);
  /// Block reads and writes its `read_idx`-th read buffer through one copy; returns the blocks that
  /// copy in and out.
  Result<std::pair<ir::BlockId, ir::BlockId>> cache_inplace(ir::BlockId block, int read_idx,
                                                            ir::Scope scope);
  Result<void> set_scope(ir::BlockId block, int write_idx, ir::Scope scope);
  /// Rows of `axis` of the written buffer shall start at multiples of factor, plus offset elements.
  Result<void> storage_align(ir::BlockId block, int write_idx, int axis, int64_t factor,
                             int64_t offset);
  /// Rows of so many bytes of the written buffer, in the widest panels of 32, 64 or 128 bytes that
  /// divide them, exchange their 16-byte pieces, so that eight rows meet no bank of shared memory twice.
  Result<void> swizzle(ir::BlockId block, int write_idx, Int bytes);
  /// The nest, which copies a box of a matrix into shared memory, may be left to the copy engine.
  Result<void> bulk_copy(ir::LoopId loop);
  /// Two copies of the written buffer may alternate from one iteration to the next.
  Result<void> double_buffer(ir::BlockId block, int write_idx);

  // Reductions.
  /// The block's init becomes a block of its own in front of `loop`; returns it. The update keeps
  /// the block's id.
  Result<ir::BlockId> decompose_reduction(ir::BlockId block, ir::LoopId loop);
  /// Partial results per iteration of the reduction loop `loop`, in a new buffer with one more axis
  /// at `factor_axis`; returns the block that computes them. The old block's id goes to the one
  /// that combines them.
  Result<ir::BlockId> rfactor(ir::LoopId loop, int factor_axis);
  /// A reduction over all that comes before each element joins to the element before it.
  Result<void> scan(ir::BlockId block);
  /// The maximum and the sums of exp(x - maximum)*y that read it are one block, which rescales what it has summed;
  /// returns it and the blocks that finish its sums.
  Result<std::vector<ir::BlockId>> online(ir::BlockId maximum);
  /// The block's weights exp(x - maximum) subtract the maximum of their tile; sums over tiles multiply by what that is off.
  /// Roundings of weights move (rounds_elsewhere).
  Result<void> rescale(ir::BlockId weights);

  /// The epilogue, which adds to the reduction's result what does not depend on it, becomes part of
  /// the reduction's init (for other reducers: joins by the same operation).
  Result<void> fuse_reduction_epilogue(ir::BlockId reduction, ir::BlockId epilogue);
  // Layouts and tensor intrinsics.
  /// The `write_idx`-th written buffer of the block, an intermediate, is laid out by an injective
  /// map, "(i, j) -> (i // 16, j, i % 16)". With a value in `pad`, places that the map leaves free
  /// are written with it, and the block's new loops are returned.
  Result<std::vector<ir::LoopId>> transform_layout(ir::BlockId block, int write_idx,
                                                   std::string_view map, std::vector<Int> pad = {});
  /// Block reads or writes its `index`-th such buffer through a copy with one dimension per
  /// variable of the subscripts; returns the copy block.
  Result<ir::BlockId> reindex(ir::BlockId block, std::string_view side, int index);
  /// The same with the copy in `scope`, laid out by an injective map from the block's variables.
  Result<ir::BlockId> reindex_cache_read(ir::BlockId block, int read_idx, ir::Scope scope,
                                         std::string_view map);
  Result<ir::BlockId> reindex_cache_write(ir::BlockId block, int write_idx, ir::Scope scope,
                                          std::string_view map);
  /// The block's variables are replaced by their images under a bijective map, each a loop of its
  /// own; returns the loops.
  Result<std::vector<ir::LoopId>> transform_block_layout(ir::BlockId block, std::string_view map);
  /// Extents of a sum of products are rounded up to multiples, one per variable, by copies of its
  /// operands padded with 0; returns the blocks that copy.
  Result<std::vector<ir::BlockId>> pad_einsum(ir::BlockId block, std::vector<Int> multiples);
  /// The block's variable `iter`, which a congruence in the update's condition determines, takes
  /// only the values that the condition allows; returns its loop.
  Result<ir::LoopId> narrow_reduction(ir::BlockId block, int iter);
  /// The block reads through a copy that has room for all its subscripts and the value around the
  /// buffer that its selects have there; returns the copy.
  Result<ir::BlockId> pad_read(ir::BlockId block, int read_idx, ir::Scope scope);
  /// A store of `select(inside, value, constant)` becomes a fill at `loop` and a store of the part
  /// inside; returns the fill.
  Result<ir::BlockId> decompose_padding(ir::BlockId block, ir::LoopId loop);
  /// The nest of `loop` goes inside its one block, which then computes a tile per instance; returns
  /// the block.
  Result<ir::BlockId> blockize(ir::LoopId loop);
  /// The nest of `loop` stands for a registered intrinsic (ir/tensor); blockized if it is outside
  /// of blocks. Returns the block.
  Result<ir::BlockId> tensorize(ir::LoopId loop, std::string_view intrinsic);

  /// A value for operands that several decisions make together, as the rows of a tile by warps.
  Result<Int> product(std::vector<Int> factors);

  // Attributes; an existing key is replaced.
  Result<void> annotate(ir::LoopId loop, std::string_view key, Int value);
  Result<void> annotate(ir::BlockId block, std::string_view key, Int value);
  Result<void> unannotate(ir::LoopId loop, std::string_view key);
  Result<void> unannotate(ir::BlockId block, std::string_view key);

  /// What follows is postprocessing, which a replay may leave out (Part::kSpace).
  Result<void> enter_postproc();

  // Sampling: the only sources of decisions. Uniform over all ordered factorisations that fit.
  Result<std::vector<Int>> sample_perfect_tile(ir::LoopId loop, int num_tiles,
                                               int64_t max_innermost, Rng& rng);
  Result<Int> sample_categorical(std::vector<int64_t> values, std::vector<int64_t> weights,
                                 Rng& rng);
  /// Tiles of which those from `partition` on have a product that `inner_factor` divides.
  Result<std::vector<Int>> sample_partitioned_tile(ir::LoopId loop, int num_tiles, int partition,
                                                   int64_t inner_factor, Rng& rng);
  /// The inner levels of a tiling of `num_tiles` levels that covers `extent`; split's -1 is the
  /// outermost one.
  Result<std::vector<Int>> decide_covering_tile(int64_t extent, int num_tiles,
                                                int64_t max_innermost, Decision inner);
  /// One of compute_locations, for compute_at_location.
  Result<Int> sample_compute_location(ir::BlockId block, Rng& rng);
  /// The same with the decision given. Errors: DecisionMismatch.
  Result<std::vector<Int>> decide_perfect_tile(ir::LoopId loop, int num_tiles,
                                               int64_t max_innermost, Decision tiles);
  Result<Int> decide_categorical(std::vector<int64_t> values, std::vector<int64_t> weights,
                                 int64_t index);

  /// Applies one instruction with ids and values of this schedule; its outputs are filled in by the
  /// call. `decision` is used by sampling instructions only.
  Result<std::vector<Output>> apply(Instruction instruction, Decision decision = {});

 private:
  ir::Program program_;
  Trace trace_;
  std::vector<int64_t> values_;  // by ValueId
  Verify verify_;
};

/// What to do with a decision that does not fit the program it is replayed on.
enum class Misfit : uint8_t { kError, kRepair };

/// All of a trace, or what stands before enter_postproc.
enum class Part : uint8_t { kWhole, kSpace };

struct ReplayOptions {
  std::span<const Decision> decisions = {};  // empty: the trace's own
  Misfit misfit = Misfit::kError;
  Verify verify = Verify::kNever;
  Part part = Part::kWhole;
  std::span<const int32_t> lines = {};  // of the script, by instruction: where an error is shown
  /// Gets the programs before and after each step that rounds elsewhere (trace.h), in order.
  std::vector<ir::Program>* around = nullptr;
};

/// Applies the trace to `base`. Recorded ids are mapped to those that this replay yields; outputs
/// may be left out.
/// Errors: those of the primitives; DecisionMismatch; TraceMalformed.
Result<Schedule> replay(const ir::Program& base, const Trace& trace, ReplayOptions options = {});

/// A uniformly random decision of the space, and a random neighbour (one prime moved between two
/// tiles; another index).
Decision random_decision(const DecisionSpace& space, Rng& rng);
Decision mutate_decision(const DecisionSpace& space, const Decision& decision, Rng& rng);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_SCHEDULE_H_
