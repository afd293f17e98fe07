// Rule "tile": reductions with an output axis that can be vectorized (products, convolutions,
// windows).
//
//     for o, r, v { for k { C } }
//   ~>
//     for o * r0 * v0 parallel {                 a task: a block of rows times a block of columns
//       [for k0]                                 block: tiles are added to where they lie
//       for v1 {
//         [copy of the columns' panel]           pack: contiguous, shared by all rows
//         for r1 {
//           for k { for r2 unrolled { for v2 unrolled { for v3 vectorized { C } } } }
//           copy-out or fused consumer           vectorized; C was accumulated in registers
//     } } }
//
// r is an axis along which some operand is reused, v the output's contiguous axis. The number of
// tasks per axis is decided and what one task does is inferred, so any extent can be cut; tails are
// guarded.
// Transposed, v is another axis: a convolution's output channels instead of its pixels, whose windows
// shift against the vectors and whose rows seldom fill them. The operand that runs along v
// (weights) and the tile in registers are copied with v innermost. In a product with a transposed
// operand (B[j,k]) v stays, and that operand alone is copied, since lanes would be gathered.
// Narrow, v3 and a group of k are one dot-product instruction on packed operands (narrow.cc), or rows,
// v3 and groups of k one on matrix tiles (amx.cc), of which r2 and v2 count whole ones.
// Source: the structure SSRSRS of Ansor (Zheng et al., OSDI 2020), sections 4.1 and 4.2, and of
// GotoBLAS' panels.
#include "search/space/sketch_rule/chain.h"
#include "search/space/sketch_rule/narrow.h"
#include "search/space/sketch_rule/register_tile.h"
#include "search/space/sketch_rule/tile_axes.h"

#include <algorithm>
#include <optional>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

/// Innermost reduction axes up to this extent are unrolled.
constexpr int64_t kMaxUnrolledWindow = 4;

int64_t preferred_tasks(const SketchContext& context, int64_t extent, bool is_vector,
                        const Variant& variant) {
  if (!makes_tasks(context)) return 1;
  // Packed panels are shared by all rows, so only columns become tasks.
  if (variant.pack) return is_vector ? 8 : 1;
  return extent >= 256 ? 4 : 1;
}

class TileRule {
 public:
  TileRule(SketchContext& context, BlockId block, BlockId consumer, const Variant& variant)
      : context_(context), block_(block), consumer_(consumer), variant_(variant) {}

  Result<void> run() {
    BlockFacts facts = facts_of(context_.schedule, block_);
    std::optional<TileAxes> axes = find_axes(context_.program(), facts);
    if (variant_.narrow && context_.chain == nullptr) {
      if (variant_.amx) narrow_ = find_amx(context_.schedule, block_, context_.target);
      if (!narrow_) narrow_ = find_narrow(context_.schedule, block_, context_.target);
    }
    if (narrow_ && axes) {
      PRUNERC_TRY_VOID(pack_narrow(context_, block_, *narrow_, &consumer_));
      facts = facts_of(context_.schedule, block_);
      axes = find_axes(context_.program(), facts);
    }
    std::vector<int> gathered;
    if (axes && variant_.transpose_operand) {
      gathered = gathered_operands(context_.program(), *facts.block, axes->vector.var);
      // A program may have something to transpose elsewhere.
      const std::optional<TileAxes> transposed = find_transposed_axes(context_.program(), facts);
      transposes_ = gathered.empty() && transposed.has_value();
      if (transposes_) axes = transposed;
    }
    if (axes && context_.chain != nullptr) PRUNERC_TRY_VOID(take_common_axes(facts, &*axes));
    if (!axes || (transposes_ && !variant_.write_cache)) {
      return error(Diag::kUnsupported, std::string("tiling of this block"));
    }
    std::vector<int> prepacked;
    if (variant_.prepack_vectors > 0) prepacked = prepack_axes(facts, &*axes);
    const int64_t lanes = context_.target.lanes(facts.element_bytes);
    width_ = axes->vector.extent >= lanes ? lanes : power_of_two(axes->vector.extent);
    if (narrow_) {
      width_ = narrow_->lanes;
      PRUNERC_TRY_VOID(split_groups(&facts));
    }
    std::vector<int> packed;
    if (variant_.pack) packed = panels(context_.program(), *facts.block, *axes);
    if (variant_.pack && packed.empty()) {
      return error(Diag::kUnsupported, std::string("packing of this block"));
    }
    if (variant_.compute_at_reader) stages_ = stages_of(context_.schedule, block_);
    if (variant_.compute_at_reader && stages_.empty()) {
      return error(Diag::kUnsupported, std::string("a block that reads no stage"));
    }
    const ir::VarId vector = axes->vector.var;
    panels_first_ = transposes_ && !narrow_ && context_.chain == nullptr &&
                    !variant_.block_reduction && !variant_.compute_at_reader &&
                    reads_panels_once(context_.program(), *facts.block, *axes, context_.target);
    if (!prepacked.empty()) PRUNERC_TRY_VOID(prepack_operands(prepacked, axes->vector));
    if (!gathered.empty()) PRUNERC_TRY_VOID(copy_transposed(*facts.block, gathered, vector));
    PRUNERC_TRY_VOID(transposes_ ? add_transposed_copies(*facts.block, vector)
                                 : add_copies(packed));
    PRUNERC_TRY_VOID(split_axes(*axes));
    PRUNERC_TRY_VOID(order_loops(*axes, facts.reduce));
    PRUNERC_TRY_VOID(mark_tile());
    PRUNERC_TRY_VOID(place_copies());
    return finish_tile();
  }

 private:
  // The tile is below the loops of the chain, and its rows are the chain's.
  Result<void> take_common_axes(const BlockFacts& facts, TileAxes* axes) {
    const Chain::Axes& common = context_.chain->of(block_);
    std::vector<Axis> rest;
    std::optional<Axis> row;
    for (const Axis& axis : facts.spatial) {
      const bool taken = common.is_outer(axis.iter);
      if (axis.iter == axes->vector.iter && (taken || axis.iter == common.row)) {
        return error(Diag::kUnsupported, std::string("vectors along a chain's axis"));
      }
      if (taken || axis.iter == axes->vector.iter) continue;
      const bool own = common.row < 0 && is_reused(*facts.block, axis.var) && axis.extent > 1;
      if (axis.iter == common.row || own) {
        if (row) rest.push_back(*row);
        row = axis;
      } else {
        rest.push_back(axis);
      }
    }
    axes->row = row;
    axes->outer = common.outer_of(facts);
    axes->outer.insert(axes->outer.end(), rest.begin(), rest.end());
    return {};
  }

  bool uses_tiles() const { return narrow_ && narrow_->is_tile(); }

  // What an instruction has of k: what is left of the axis counts in instructions.
  Result<void> split_groups(BlockFacts* facts) {
    for (Axis& axis : facts->reduce) {
      if (axis.iter != narrow_->depth.iter) continue;
      std::vector<Int> factors = {Int(-1), Int(narrow_->group)};
      if (uses_tiles()) factors.insert(factors.begin() + 1, Int(narrow_->step / narrow_->group));
      PRUNERC_TRY(const std::vector<LoopId> parts, context_.schedule.split(axis.loop, factors));
      axis.loop = parts[0];
      axis.extent = ceil_div(axis.extent, narrow_->step);
      groups_.assign(parts.begin() + 1, parts.end());
    }
    return {};
  }

  // What it has of rows and columns. Whole ones alone: what is left is guarded by the tile, outside of the
  // instruction.
  Result<void> split_instruction(TileAxes* axes) {
    const auto split = [&](Axis* axis, int64_t size) -> Result<void> {
      PRUNERC_TRY(const std::vector<LoopId> parts,
                  context_.schedule.split(axis->loop, {Int(-1), Int(size)}));
      axis->loop = parts[0];
      axis->extent = ceil_div(axis->extent, size);
      instruction_.push_back(parts[1]);
      return {};
    };
    if (uses_tiles()) {
      if (!axes->row || axes->row->iter != narrow_->row.iter) {
        return error(Diag::kUnsupported, std::string("rows of matrix tiles along another axis"));
      }
      PRUNERC_TRY_VOID(split(&*axes->row, narrow_->rows));
    }
    PRUNERC_TRY_VOID(split(&axes->vector, narrow_->lanes));
    instruction_.insert(instruction_.end(), groups_.begin(), groups_.end());
    return {};
  }

  bool has_chain_rows() const {
    return context_.chain != nullptr && !context_.chain->factors.empty();
  }

  // The const operands to be copied for vectors along these axes, or along transposed ones; none if
  // there are none, and then the tile is the usual one.
  std::vector<int> prepack_axes(const BlockFacts& facts, TileAxes* axes) {
    const ir::Program& program = context_.program();
    std::vector<int> found = const_operands(program, *facts.block, axes->vector.var);
    if (!found.empty() || !variant_.write_cache) return found;
    const std::optional<TileAxes> transposed = find_transposed_axes(program, facts);
    if (!transposed) return {};
    found = const_operands(program, *facts.block, transposed->vector.var);
    if (found.empty()) return {};
    *axes = *transposed;
    transposes_ = true;
    return found;
  }

  Result<void> prepack_operands(const std::vector<int>& reads, const Axis& vector) {
    const int64_t vectors =
        std::min<int64_t>(variant_.prepack_vectors, power_of_two(ceil_div(vector.extent, width_)));
    prepacks_ = true;
    return prepack(context_, block_, reads, vector.var, vectors * width_, width_);
  }

  // Operands whose rows run along the vector axis and which all rows of the tile share.
  static std::vector<int> panels(const ir::Program& program, const ir::Block& block,
                                 const TileAxes& axes) {
    std::vector<int> found;
    for (std::size_t i = 0; i < block.reads.size(); ++i) {
      const ir::Access& access = block.reads[i];
      if (access.buffer == block.writes[0].buffer) continue;
      const bool shared = axes.row && !mentions(access, axes.row->var);
      if (shared && num_long_dims(program, access) > 1 &&
          is_contiguous(program, access, axes.vector.var)) {
        found.push_back(static_cast<int>(i));
      }
    }
    return found;
  }

  // Copies are made while they still stand at the top, and moved once the loops are there.
  Result<void> add_copies(const std::vector<int>& packed) {
    for (const int read : packed) {
      PRUNERC_TRY(const BlockId copy,
                  context_.schedule.cache_read(block_, read, ir::Scope::kGlobal));
      packs_.push_back(copy);
    }
    if (!consumer_.valid() && variant_.write_cache && !variant_.block_reduction) {
      PRUNERC_TRY(consumer_, context_.schedule.cache_write(block_, 0, ir::Scope::kLocal));
    }
    return {};
  }

  // Operands with the vector axis innermost. The block's program may be gone after the first.
  Result<void> copy_transposed(const ir::Block& block, const std::vector<int>& reads,
                               ir::VarId vector) {
    struct Transposed {
      int read;
      std::string map;
      std::size_t dim, num_dims;
    };
    std::vector<Transposed> transposed;
    for (const int read : reads) {
      const ir::Access& from = block.reads[static_cast<std::size_t>(read)];
      std::vector<ir::VarId> vars = vars_of(block, from);
      const auto dim = std::find(vars.begin(), vars.end(), vector) - vars.begin();
      transposed.push_back(
          {read, transposing_map(block, from, vector), static_cast<std::size_t>(dim), vars.size()});
    }
    for (const Transposed& t : transposed) {
      PRUNERC_TRY(const BlockId copy,
                  context_.schedule.reindex_cache_read(block_, t.read, ir::Scope::kGlobal, t.map));
      PRUNERC_TRY_VOID(vectorize_copy(copy, t.dim, t.num_dims));
    }
    return {};
  }

  Result<void> add_transposed_copies(const ir::Block& block, ir::VarId vector) {
    const ir::Access to = block.writes[0];
    const std::string to_map = transposing_map(block, to, vector);
    PRUNERC_TRY(transposed_dim_, dim_of_consumer(block, vector));
    if (!prepacks_) {
      PRUNERC_TRY_VOID(copy_transposed(block, {transposed_operand(block, vector)}, vector));
    }
    schedule::Schedule& s = context_.schedule;
    PRUNERC_TRY(const BlockId copy_out,
                s.reindex_cache_write(block_, 0, ir::Scope::kLocal, to_map));
    if (!consumer_.valid()) {
      consumer_ = copy_out;
      return {};
    }
    return s.compute_inline(copy_out);
  }

  // The block's variables that the access mentions: a reindexed copy has a loop for each.
  static std::vector<ir::VarId> vars_of(const ir::Block& block, const ir::Access& access) {
    std::vector<ir::VarId> vars;
    for (const ir::IterVar& iter : block.iters) {
      if (mentions(access, iter.var->id)) vars.push_back(iter.var->id);
    }
    return vars;
  }

  // Which loop of the consumer runs along the block's variable: that of the same place among the axes
  // longer than 1. A copy that is still to be made has loops for the variables of the subscripts.
  Result<std::size_t> dim_of_consumer(const ir::Block& block, ir::VarId var) const {
    const auto place_in = [](const std::vector<ir::VarId>& vars, ir::VarId v) {
      return static_cast<std::size_t>(std::find(vars.begin(), vars.end(), v) - vars.begin());
    };
    if (!consumer_.valid()) return place_in(vars_of(block, block.writes[0]), var);
    const auto axes_of = [](const BlockFacts& facts) {
      std::vector<ir::VarId> axes;
      for (const Axis& axis : facts.spatial) {
        if (axis.extent > 1) axes.push_back(axis.var);
      }
      return axes;
    };
    const BlockFacts facts = facts_of(context_.schedule, consumer_);
    const std::size_t place = place_in(axes_of(facts_of(context_.schedule, block_)), var);
    const std::vector<ir::VarId> axes = axes_of(facts);
    if (place >= axes.size()) return error(Diag::kUnsupported, std::string("this epilogue"));
    std::vector<ir::VarId> all;
    for (const ir::IterVar& iter : facts.block->iters) all.push_back(iter.var->id);
    return place_in(all, axes[place]);
  }

  // The operand is copied once, in parallel: it is what all tasks share.
  Result<void> vectorize_copy(BlockId copy, std::size_t dim, std::size_t num_dims) {
    const BlockFacts facts = facts_of(context_.schedule, copy);
    if (!facts.trivial || facts.spatial.size() != num_dims || num_dims < 2) {
      return error(Diag::kUnsupported, std::string("a copy of this operand"));
    }
    std::vector<LoopId> loops, rows;
    std::size_t row = num_dims;
    for (std::size_t i = 0; i < num_dims; ++i) {
      if (i == dim) continue;
      const Axis& axis = facts.spatial[i];
      const bool is_row = is_contiguous(context_.program(), facts.block->reads[0], axis.var);
      if (is_row && axis.extent >= width_) row = loops.size();
      loops.push_back(axis.loop);
    }
    // What lies side by side in the operand are rows of a tile, so that it is read as it lies (codegen/DESIGN.md, 40).
    if (row < num_dims) {
      PRUNERC_TRY(rows, context_.schedule.split(loops[row], {Int(-1), Int(width_)}));
      loops[row] = rows[0];
    }
    PRUNERC_TRY(const std::vector<LoopId> parts,
                context_.schedule.split(facts.spatial[dim].loop, {Int(-1), Int(width_)}));
    std::vector<LoopId> order = loops;
    order.push_back(parts[0]);
    if (!rows.empty()) order.push_back(rows[1]);
    order.push_back(parts[1]);
    PRUNERC_TRY_VOID(context_.schedule.reorder(order));
    PRUNERC_TRY_VOID(context_.schedule.vectorize(parts[1]));
    if (!rows.empty()) {
      PRUNERC_TRY_VOID(context_.schedule.unroll(rows[1]));
      loops.push_back(parts[0]);  // of few tiles of rows their tiles of columns are tasks, too
    }
    static_cast<void>(parallelize(context_, loops).ok());
    return {};
  }

  Result<void> split_axes(TileAxes axes) {
    const int64_t columns = axes.vector.extent, rows = axes.row ? axes.row->extent : 0;
    const int64_t units = ceil_div(columns, width_);
    if (narrow_) PRUNERC_TRY_VOID(split_instruction(&axes));
    const RegisterTile tile = register_tile(context_.target, narrow_, transposes_, units,
                                            axes.row ? axes.row->extent : 0);
    PRUNERC_TRY(vector_, tile_axis(context_, axes.vector, units, tile.vectors,
                                   preferred_tasks(context_, columns, true, variant_),
                                   tile.most_vectors, narrow_ ? 0 : width_));
    if (!axes.row) return {};
    if (has_chain_rows()) {
      const std::vector<Int>& factors = context_.chain->factors;
      PRUNERC_TRY(const std::vector<LoopId> parts,
                  context_.schedule.split(axes.row->loop, factors));
      row_ = TiledAxis{parts[0], parts[1], {parts[2]}, factors[2].value};
      return {};
    }
    PRUNERC_TRY(row_,
                tile_axis(context_, *axes.row, axes.row->extent, tile.accumulators / vector_.size,
                          preferred_tasks(context_, rows, false, variant_), tile.most_rows, 0));
    return {};
  }

  Result<void> order_loops(const TileAxes& axes, const std::vector<Axis>& reduce) {
    std::vector<LoopId> tasks, reductions, order;
    for (const Axis& axis : axes.outer) tasks.push_back(axis.loop);
    // In a chain the common loops go first.
    const std::size_t num_common =
        has_chain_rows() ? context_.chain->depth() - 1 : axes.outer.size();
    if (row_) tasks.insert(tasks.begin() + static_cast<std::ptrdiff_t>(num_common), row_->task);
    if (panels_first_) {
      tasks.insert(tasks.begin(), {vector_.task, vector_.tile});
    } else {
      tasks.push_back(vector_.task);
    }
    // The innermost that is run through, or the first below those of one iteration.
    std::size_t num_outer = axes.outer.size();
    while (num_outer > 0 && axes.outer[num_outer - 1].extent == 1) --num_outer;
    stage_loop_ = tasks[num_outer > 0 ? num_outer - 1 : axes.outer.size()];
    for (const Axis& axis : reduce) reductions.push_back(axis.loop);
    if (variant_.rotate_reduction && reductions.size() > 1) {
      std::rotate(reductions.begin(), reductions.begin() + 1, reductions.end());
    }
    order = tasks;
    if (variant_.block_reduction) PRUNERC_TRY_VOID(cut_reduction(reduce, &reductions, &order));
    if (!panels_first_) order.push_back(vector_.tile);
    if (row_) order.push_back(row_->tile);
    tile_loop_ = variant_.block_reduction ? tasks.back() : order.back();
    panel_loop_ = vector_.tile;
    order.insert(order.end(), reductions.begin(), reductions.end());
    const auto vectors_at = order.insert(order.end(), vector_.inner.begin(), vector_.inner.end());
    // Instructions on matrix tiles go on with the tile of B that they have.
    if (row_) {
      order.insert(uses_tiles() ? order.end() : vectors_at, row_->inner.begin(), row_->inner.end());
    }
    order.insert(order.end(), instruction_.begin(), instruction_.end());
    PRUNERC_TRY_VOID(context_.schedule.reorder(order));
    reduction_ = reductions.front();
    tasks_ = std::move(tasks);
    // A window of three would leave its loop as often as it runs through it. Transposed, its steps
    // share the scalars of a row, and written out they would keep more of them than there are
    // registers.
    if (transposes_) return {};
    for (const Axis& axis : reduce) {
      const bool innermost = axis.loop == reductions.back();
      if (innermost && axis.extent > 1 && axis.extent <= kMaxUnrolledWindow) {
        PRUNERC_TRY_VOID(context_.schedule.unroll(axis.loop));
      }
    }
    return {};
  }

  // Parts of the longest reduction axis, outside of the tiles: a part's panels stay in the cache
  // while all tiles of a task use them, and the tiles are added to where they lie.
  Result<void> cut_reduction(const std::vector<Axis>& reduce, std::vector<LoopId>* reductions,
                             std::vector<LoopId>* order) {
    const Axis* longest = &reduce[0];
    for (const Axis& axis : reduce) {
      if (axis.extent > longest->extent) longest = &axis;
    }
    const ReductionPart part = reduction_part(narrow_);
    if (longest->extent < 2 * part.least) {
      return error(Diag::kUnsupported, std::string("parts of this reduction"));
    }
    const std::vector<Int> factors = context_.cover(longest->extent, {part.preferred}, 0);
    PRUNERC_TRY(const std::vector<LoopId> parts, context_.schedule.split(longest->loop, factors));
    std::replace(reductions->begin(), reductions->end(), longest->loop, parts[1]);
    order->push_back(parts[0]);
    part_loop_ = parts[0];
    return {};
  }

  Result<void> mark_tile() {
    if (!narrow_) PRUNERC_TRY_VOID(context_.schedule.vectorize(vector_.inner.back()));
    PRUNERC_TRY_VOID(context_.schedule.unroll(vector_.inner.front()));
    if (row_) PRUNERC_TRY_VOID(context_.schedule.unroll(row_->inner.front()));
    return {};
  }

  // The last of the loops is a row of the tile, units behind it go outside: vectors of it, the rest unrolled.
  Result<void> mark_copy(BlockId copy, std::vector<LoopId> loops, bool unroll_rows) {
    if (loops.empty()) return {};
    const std::span<const ir::IterVar> iters = find_block(context_.program(), copy)->iters;
    std::size_t row = loops.size();
    while (row > 1 && ir::constant_value(iters[row - 1].extent) == 1) --row;
    if (row < loops.size()) {
      std::rotate(loops.begin(), loops.begin() + static_cast<std::ptrdiff_t>(row), loops.end());
      PRUNERC_TRY_VOID(context_.schedule.reorder(loops));
    }
    PRUNERC_TRY(const std::vector<LoopId> parts,
                context_.schedule.split(loops.back(), {Int(-1), Int(width_)}));
    PRUNERC_TRY_VOID(context_.schedule.vectorize(parts[1]));
    PRUNERC_TRY_VOID(context_.schedule.unroll(parts[0]));
    for (std::size_t i = 0; unroll_rows && i + 1 < loops.size(); ++i) {
      PRUNERC_TRY_VOID(context_.schedule.unroll(loops[i]));
    }
    return {};
  }

  // Vectors leave across the rows of the result.
  Result<void> mark_transposed(std::vector<LoopId> loops) {
    if (transposed_dim_ >= loops.size()) {
      return error(Diag::kUnsupported, std::string("a copy of this result"));
    }
    PRUNERC_TRY(const std::vector<LoopId> parts,
                context_.schedule.split(loops[transposed_dim_], {Int(-1), Int(width_)}));
    loops[transposed_dim_] = parts[0];
    std::vector<LoopId> order = loops;
    order.push_back(parts[1]);
    PRUNERC_TRY_VOID(context_.schedule.reorder(order));
    PRUNERC_TRY_VOID(context_.schedule.vectorize(parts[1]));
    for (const LoopId loop : loops) PRUNERC_TRY_VOID(context_.schedule.unroll(loop));
    return {};
  }

  Result<void> place_copies() {
    for (const BlockId pack : packs_) {
      PRUNERC_TRY(const std::vector<LoopId> loops, context_.schedule.compute_at(pack, panel_loop_));
      PRUNERC_TRY_VOID(mark_copy(pack, loops, false));
    }
    for (const BlockId stage : stages_) {
      PRUNERC_TRY(const std::vector<LoopId> loops,
                  context_.schedule.compute_at(stage, stage_loop_));
      PRUNERC_TRY_VOID(mark_copy(stage, loops, false));
    }
    if (!consumer_.valid()) return {};
    PRUNERC_TRY(const std::vector<LoopId> loops,
                context_.schedule.reverse_compute_at(consumer_, tile_loop_));
    if (transposes_) return mark_transposed(loops);
    // The rows of a tile are few, those of a task and of matrix tiles are not.
    return mark_copy(consumer_, loops, !variant_.block_reduction && !uses_tiles());
  }

  Result<void> finish_tile() {
    if (part_loop_.valid() || narrow_) {
      const LoopId first = part_loop_.valid() ? part_loop_ : reduction_;
      PRUNERC_TRY(const BlockId init, context_.schedule.decompose_reduction(block_, first));
      if (narrow_) {
        PRUNERC_TRY_VOID(context_.schedule.vectorize(context_.schedule.loops_of(init).back()));
        PRUNERC_TRY_VOID(context_.schedule.tensorize(instruction_.front(), narrow_->tensor->name));
      }
    }
    if (makes_tasks(context_)) PRUNERC_TRY_VOID(parallelize(context_, tasks_));
    return {};
  }

  SketchContext& context_;
  BlockId block_, consumer_;
  const Variant& variant_;
  int64_t width_ = 1;
  std::optional<NarrowProduct> narrow_;  // lanes and a group of k, or tiles, are one instruction
  bool prepacks_ = false;                // operands that the vectors run along are copied already
  bool panels_first_ = false;            // outside of all other axes
  bool transposes_ = false;         // vectors along an axis that the result does not have innermost
  std::size_t transposed_dim_ = 0;  // of the result, which the vectors run along
  TiledAxis vector_;
  std::optional<TiledAxis> row_;
  std::vector<BlockId> packs_, stages_;
  std::vector<LoopId> tasks_;
  LoopId tile_loop_, panel_loop_, stage_loop_, part_loop_;
  LoopId reduction_;                 // outermost of the tile's
  std::vector<LoopId> groups_;       // of k in an instruction
  std::vector<LoopId> instruction_;  // all of its loops
};

}  // namespace

bool can_prepack(const schedule::Schedule& schedule, BlockId block) {
  const BlockFacts facts = facts_of(schedule, block);
  const ir::Program& program = schedule.program();
  for (const std::optional<TileAxes>& axes :
       {find_axes(program, facts), find_transposed_axes(program, facts)}) {
    if (axes && !const_operands(program, *facts.block, axes->vector.var).empty()) {
      return true;
    }
  }
  return false;
}

bool can_use_narrow(const schedule::Schedule& schedule, BlockId block, const ir::Target& target,
                    const Variant& variant) {
  if (!variant.narrow) return false;
  return find_narrow(schedule, block, target).has_value() ||
         (variant.amx && find_amx(schedule, block, target).has_value());
}

bool is_reused(const ir::Block& block, ir::VarId var) {
  return std::any_of(block.reads.begin(), block.reads.end(), [&](const ir::Access& access) {
    return access.buffer != block.writes[0].buffer && !mentions(access, var);
  });
}

std::vector<BlockId> stages_of(const schedule::Schedule& schedule, BlockId block) {
  std::vector<BlockId> found;
  for (const BlockId id : schedule.producers(block)) {
    const BlockFacts facts = facts_of(schedule, id);
    const bool stage = facts.trivial && !facts.spatial.empty() && !is_reduction(*facts.block);
    if (stage && schedule.consumers(id) == std::vector<BlockId>{block}) found.push_back(id);
  }
  return found;
}

bool can_tile(const schedule::Schedule& schedule, BlockId block) {
  const BlockFacts facts = facts_of(schedule, block);
  const std::optional<TileAxes> axes = find_axes(schedule.program(), facts);
  if (!axes) return false;
  const ir::VarId vector = axes->vector.var;
  // Every operand that moves with the vector axis must do so without gaps, or lanes would be gathered. One that
  // has a single row may, under a condition, move along its tail alone: h - r.
  const auto fits = [&](const ir::Access& access) {
    if (!mentions(access, vector)) return true;
    const ir::Access dense = without_unit_tail(schedule.program(), access);
    return step_of((mentions(dense, vector) ? dense : access).region.back().min, vector) != 0;
  };
  return std::all_of(facts.block->reads.begin(), facts.block->reads.end(), fits);
}

Result<void> tile_block(SketchContext& context, BlockId block, BlockId consumer,
                        const Variant& variant) {
  const schedule::Schedule before = context.schedule.fork();
  Result<void> done = TileRule(context, block, consumer, variant).run();
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search
