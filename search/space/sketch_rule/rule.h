// What the sketch rules share: the schedule being built, decisions with heuristic defaults, and
// facts about blocks.
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_RULE_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_RULE_H_

#include "ir/int_math.h"
#include "ir/program.h"
#include "ir/query.h"
#include "ir/target.h"
#include "schedule/schedule.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::search {

/// Which structural alternative a sketch takes; every rule reads what concerns it.
struct Variant {
  std::string name;
  bool inline_stages = true;     // elementwise stages into their consumers
  bool write_cache = true;       // accumulate a tile in a buffer of its own, then copy out
  bool pack = false;             // copy the panel that the vector axis runs along
  bool block_reduction = false;  // the longest reduction axis in parts, outside of the panels
  bool rotate_reduction =
      false;  // first reduction axis innermost: window axes and their masks go outside
  bool compute_at_reader = false;  // elementwise stages are computed inside of their reader's loops
  bool transpose_operand = false;  // an operand is copied with another axis innermost (tile.cc)
  int prepack_vectors = 0;  // const operands are copied in blocks of so many vectors (prepack.cc)
  bool narrow = false;    // products of bytes or bf16 on the target's dot instructions (narrow.cc)
  bool amx = false;       // such products on matrix tiles, where they fit (amx.cc)
  bool rfactor = true;    // partial results along a contiguous reduction axis
  bool fuse_rows = true;  // all stages of a row before the next row
  bool transposition = false;  // tiles of blocks that read across what they write
  bool fuse_axes = false;      // axes of tiles' rows become one where windows are read, too
  bool chain = false;          // contractions and what is between them, task by task (chain.cc)
  bool unit_rows = false;      // an axis of extent 1 counts: what has one row is one task (rows.cc)
};

struct Chain;

/// The schedule under construction. Decisions made through it are recorded with their defaults.
struct SketchContext {
  schedule::Schedule schedule;
  const ir::Target& target;
  /// Blocks that some rule has plans for: nobody else inlines them or computes with them.
  std::vector<ir::BlockId> keep = {};
  /// Whose blocks are being scheduled (chain.h); null otherwise.
  const Chain* chain = nullptr;
  bool keeps(ir::BlockId block) const;

  const ir::Program& program() const { return schedule.program(); }
  /// One of the sorted values, the one nearest to `preferred` by default; a literal if there is no
  /// choice.
  schedule::Int pick(std::vector<int64_t> values, int64_t preferred);
  /// Factors for split: inferred outermost, then inner levels that are decided, any that cover the
  /// extent with little waste. By default near `preferred` (outermost of them first); the innermost
  /// is at most `max_innermost` (0: no cap). Literals if there is no choice.
  std::vector<schedule::Int> cover(int64_t extent, std::vector<int64_t> preferred,
                                   int64_t max_innermost);
};

/// One iteration variable of a block whose loops are as the operator came.
struct Axis {
  int iter = 0;  // index into block.iters
  ir::LoopId loop;
  int64_t extent = 1;
  ir::VarId var;  // of the iteration variable
};

/// A block with one loop per iteration variable.
struct BlockFacts {
  const ir::Block* block = nullptr;  // of the program it was made from
  std::vector<Axis> spatial, reduce;
  bool trivial = false;  // every binding is a loop variable of its own (or constant, for extent 1)
  int64_t element_bytes = 4;
};

const ir::Block* find_block(const ir::Program& program, ir::BlockId id);
BlockFacts facts_of(const schedule::Schedule& schedule, ir::BlockId id);

bool is_reduction(const ir::Block& block);
/// Change of the subscript `index` for one step of `var`; nullopt if it is not affine in it.
/// Conditions inside are ignored: a guarded subscript counts as what it is where it is valid.
int64_t step_of(ir::Expr index, ir::VarId var);
bool mentions(const ir::Access& access, ir::VarId var);
/// Whether every subscript is one variable or a constant: then any order of them is a layout.
bool has_variable_subscripts(const ir::Access& access);
/// The buffer's last subscript moves by one with `var` and no other subscript does, or the last ones are
/// the digits of `var`.
bool is_contiguous(const ir::Access& access, ir::VarId var);
/// The access without dimensions of extent 1 at its end, which take no room.
ir::Access without_unit_tail(const ir::Program& program, const ir::Access& access);
/// How many dimensions longer than 1 the access has.
std::ptrdiff_t num_long_dims(const ir::Program& program, const ir::Access& access);
/// The same of the access without its unit tail.
bool is_contiguous(const ir::Program& program, const ir::Access& access, ir::VarId var);

/// Some operand's elements follow each other along `var`, unit tails left out.
bool reads_contiguously(const ir::Program& program, const ir::Block& block, ir::VarId var);

/// The single elementwise reader of a block's result that can finish its tiles; invalid if there is
/// none.
ir::BlockId epilogue_of(const schedule::Schedule& schedule, ir::BlockId block);

/// The block writes a buffer with a dimension for each of its variables, in their order; returns the
/// block that copies that to where the result was.
Result<ir::BlockId> write_by_variable(SketchContext& context, ir::BlockId block);

/// Smallest power of two that is at least n.
int64_t power_of_two(int64_t n);
using ir::ceil_div;
/// Of `values` those up to `limit` (at least the first one).
std::vector<int64_t> up_to(std::vector<int64_t> values, int64_t limit);

/// Splits a loop for vectors: [outer, unrolled, lanes]; the two inner ones are marked. Returns the
/// outer loop.
Result<ir::LoopId> vectorize_loop(SketchContext& context, ir::LoopId loop, int64_t extent,
                                  int64_t lanes, int64_t preferred_unroll);

/// Cuts a reduction loop into `unroll * lanes` interleaved parts with a partial result each (the
/// new buffer's last axis); returns the block that computes them. Its innermost loop runs over the
/// parts.
Result<ir::BlockId> split_sum(SketchContext& context, ir::LoopId loop, schedule::Int unroll,
                              int64_t lanes);
/// Lets the block that combines partial results do so in groups of four first, instead of one long
/// chain.
void combine_lanes(SketchContext& context, ir::BlockId block, int64_t lanes);

/// Fuses the loops (outermost first, directly nested) and makes the result parallel if there are
/// threads for it. Where the program does not allow that for all of them, fewer are taken. Returns
/// the innermost loop of the result.
Result<ir::LoopId> parallelize(SketchContext& context, std::vector<ir::LoopId> loops);

// The rules. Each changes the context's schedule or leaves it as it was.

/// inline.cc: elementwise stages disappear into their readers where that repeats no expensive work.
void inline_stages(SketchContext& context, const Variant& variant);

/// phases.cc: reductions of which a congruence lets through every s-th step are computed by phases of
/// the output.
void split_phases(SketchContext& context);

/// recover_axes.cc: variables of reductions that an operand's subscripts take apart (v // c, v % c) become
/// axes, in the block and in its epilogue; so do those of a last stage that reads rows' values so.
void recover_axes(SketchContext& context);

/// fuse_axes.cc: neighbouring axes along which a tile's vectors are shared become one, where an
/// address moves by one stride along it; with `windows` everywhere.
void fuse_axes(SketchContext& context, bool windows);
/// The last axes of a sum that lie side by side in all it reads become one.
void join_summed_axes(SketchContext& context, ir::BlockId block);

/// tile.cc: multi-level tiling of one reduction whose output axis can be vectorized; `consumer`
/// (may be invalid) is the elementwise block that finishes its tiles.
Result<void> tile_block(SketchContext& context, ir::BlockId block, ir::BlockId consumer,
                        const Variant& variant);
/// An axis that some operand does not move along: its loads are shared by the rows of a tile.
bool is_reused(const ir::Block& block, ir::VarId var);
/// An elementwise block, as it came, whose only reader is `block`: with Variant::compute_at_reader, tile_block
/// computes it inside of its loops.
std::vector<ir::BlockId> stages_of(const schedule::Schedule& schedule, ir::BlockId block);
/// Whether tile_block would find its axes.
bool can_tile(const schedule::Schedule& schedule, ir::BlockId block);

/// prepack.cc: the const operands that move along `var`, as numbers among the block's reads; none
/// if one of them has other subscripts than variables.
std::vector<int> const_operands(const ir::Program& program, const ir::Block& block, ir::VarId var);
/// Copies these operands in blocks of `block_size` elements along `var`, a block's other axes inside
/// of it: W[k, n] becomes [n / b, k, b]. `lanes` of a block are one vector.
Result<void> prepack(SketchContext& context, ir::BlockId block, const std::vector<int>& reads,
                     ir::VarId var, int64_t block_size, int64_t lanes);
/// Whether tile_block, asked to, would prepack an operand of the block.
bool can_prepack(const schedule::Schedule& schedule, ir::BlockId block);

/// narrow.cc, amx.cc: whether tile_block, asked to, would use an instruction of the target.
bool can_use_narrow(const schedule::Schedule& schedule, ir::BlockId block, const ir::Target& target,
                    const Variant& variant);
/// amx.cc: whether the target has instructions on matrix tiles.
bool has_matrix_tiles(const ir::Target& target);

/// dot.cc: reductions whose operands are contiguous along the reduction only (products with a
/// transposed operand).
Result<void> tile_dot(SketchContext& context, ir::BlockId block, ir::BlockId epilogue,
                      const Variant& variant);
bool can_tile_dot(const schedule::Schedule& schedule, ir::BlockId block);

/// rows.cc: a chain of stages computed row by row under the outer loops of the last one; also
/// single elementwise blocks.
Result<void> schedule_rows(SketchContext& context, const std::vector<ir::BlockId>& blocks,
                           const Variant& variant);

/// rows.cc: the block loses its variables of extent 1. Errors: Unsupported where it would have none; those of
/// transform_block_layout.
Result<void> drop_unit_axes(SketchContext& context, ir::BlockId block);

/// scan.cc: a reduction over all that comes before each element, element by element.
Result<void> schedule_scan(SketchContext& context, ir::BlockId block);

/// Axes of an elementwise block: some operand lies along `rows`, the result along `columns`.
struct Crossing {
  Axis rows, columns;
};
/// Nullopt if there is nothing like that, or an extent is below `least`.
std::optional<Crossing> find_crossing(const ir::Program& program, const BlockFacts& facts,
                                      int64_t least);
/// transposition.cc: tiles of an elementwise block that reads along one axis and writes along another.
Result<void> tile_transposition(SketchContext& context, ir::BlockId block);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_RULE_H_
