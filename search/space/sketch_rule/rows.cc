// Rule "rows": stages that work row by row (softmax, layernorm, row sums), and single elementwise
// stages.
//
//     for i { for j { A } }   for i { for k { B: reduction } }   for i { for j { C } }
//   ~>
//     for i0 parallel { for i1 {
//       for j vectorized { A }
//       for k0 { for k1 vectorized { B_rf } }  for k1 { B }
//       for j vectorized { C }
//     } }
//
// so that a row stays in the first-level cache between its stages.
#include "ir/arith/loop_index.h"
#include "search/space/sketch_rule/chain.h"

#include <algorithm>
#include <optional>
#include <string>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

constexpr int64_t kMaxUnroll = 16;
/// Tasks per thread that even out their ends.
constexpr int64_t kTasksPerThread = 4;

/// What works on more elements has enough for all threads: as one task it is never the fastest.
constexpr int64_t kMaxUnitRow = int64_t{1} << 16;

bool is_unit(const Axis& axis) { return axis.extent == 1; }

// Whether axes of extent 1 are rows of the block, as sketch "one row" has it.
bool counts_units(const BlockFacts& facts, const Variant& variant) {
  if (!variant.unit_rows) return false;
  int64_t elements = 1;
  for (const std::vector<Axis>* axes : {&facts.spatial, &facts.reduce}) {
    for (const Axis& axis : *axes) {
      elements = std::min(elements, kMaxUnitRow + 1) * std::min(axis.extent, kMaxUnitRow + 1);
    }
  }
  return elements <= kMaxUnitRow;
}

// A block without rows: a total, or what is made of totals. In a chain axes of extent 1 are common ones.
bool is_single(const SketchContext& context, BlockId id, const Variant& variant) {
  const BlockFacts facts = facts_of(context.schedule, id);
  if (facts.block == nullptr || !facts.trivial) return false;
  const bool units_count = counts_units(facts, variant) || context.chain != nullptr;
  return facts.spatial.empty() ||
         (!units_count && std::all_of(facts.spatial.begin(), facts.spatial.end(), is_unit));
}

// "(a0, a1, a2) -> (a1, a2)": the variables longer than 1, if there are such of each kind that the block has;
// nullopt otherwise.
std::optional<std::string> long_axes_map(const ir::Block& block) {
  std::string from, to;
  bool reduces = false, still_reduces = false;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    const std::string name = "a" + std::to_string(i);
    const bool is_reduced = block.iters[i].kind != ir::IterKind::kSpatial;
    from += (from.empty() ? "" : ", ") + name;
    reduces = reduces || is_reduced;
    if (ir::constant_value(block.iters[i].extent) == 1) continue;
    to += (to.empty() ? "" : ", ") + name;
    still_reduces = still_reduces || is_reduced;
  }
  if (to.empty() || reduces != still_reduces) return std::nullopt;
  return "(" + from + ") -> (" + to + ")";
}

}  // namespace

// The block becomes one that never had axes of extent 1:
//     block "T" [u: S(1), i: R(40), j: R(70)] { T[u, 0] += X[i, j] }
//   ~>  block "T" [i: R(40), j: R(70)] { T[0, 0] += X[i, j] }
Result<void> drop_unit_axes(SketchContext& context, BlockId id) {
  const BlockFacts facts = facts_of(context.schedule, id);
  const bool has_units = std::any_of(facts.spatial.begin(), facts.spatial.end(), is_unit) ||
                         std::any_of(facts.reduce.begin(), facts.reduce.end(), is_unit);
  if (!has_units) return {};
  const std::optional<std::string> map = long_axes_map(*facts.block);
  if (!map) return error(Diag::kUnsupported, std::string("a block of one value"));
  const Result<std::vector<LoopId>> left = context.schedule.transform_block_layout(id, *map);
  return left.ok() ? Result<void>() : left.error();
}

namespace {

class RowRule {
 public:
  RowRule(SketchContext& context, const std::vector<BlockId>& blocks, const Variant& variant)
      : context_(context), blocks_(blocks), variant_(variant) {}

  Result<void> run() {
    const BlockId last = blocks_.back();
    PRUNERC_TRY(const LoopId row, make_rows(last));
    row_ = row;
    std::vector<BlockId> inside, outside;
    for (std::size_t i = blocks_.size() - 1; i > 0; --i) {
      const BlockId id = blocks_[i - 1];
      const bool moved =
          row.valid() && variant_.fuse_rows && context_.schedule.compute_at(id, row).ok();
      (moved ? inside : outside).push_back(id);
    }
    inside.push_back(last);
    for (const BlockId id : inside) vectorize_block(id);
    // What could not join has loops of its own.
    for (const BlockId id : outside) {
      const std::vector<BlockId> alone = {id};
      static_cast<void>(RowRule(context_, alone, variant_).run().ok());
    }
    return {};
  }

 private:
  // Leading axes of the last block that every reduction of the chain keeps; axes of extent 1, which one
  // block may have and another not, do not count.
  std::size_t num_row_axes(const BlockFacts& last) const {
    const auto num_long = [](const BlockFacts& facts) {
      return std::count_if(facts.spatial.begin(), facts.spatial.end(),
                           [](const Axis& axis) { return axis.extent > 1; });
    };
    std::ptrdiff_t kept = num_long(last);
    bool any_reduction = false;
    for (const BlockId id : blocks_) {
      const BlockFacts facts = facts_of(context_.schedule, id);
      if (facts.block == nullptr || facts.reduce.empty()) continue;
      any_reduction = true;
      kept = std::min(kept, num_long(facts));
    }
    // Without a reduction, or where the last stage stands apart from them, the last axis is the row itself.
    if (!any_reduction || (!variant_.fuse_rows && last.reduce.empty())) {
      std::size_t row = last.spatial.size();
      while (row > 1 && is_unit(last.spatial[row - 1])) --row;
      if (row == 0) return 0;
      const auto end = last.spatial.begin() + static_cast<std::ptrdiff_t>(row - 1);
      const bool units_count = counts_units(last, variant_);
      return !units_count && std::all_of(last.spatial.begin(), end, is_unit) ? 0 : row - 1;
    }
    std::size_t rows = 0;
    for (; rows < last.spatial.size(); ++rows) {
      if (last.spatial[rows].extent > 1 && kept-- == 0) break;
    }
    return rows;
  }

  // The loop that runs over the rows of one task; invalid if there are no row axes.
  Result<LoopId> make_rows(BlockId last) {
    const BlockFacts facts = facts_of(context_.schedule, last);
    if (facts.block == nullptr || !facts.trivial) {
      return error(Diag::kUnsupported, std::string("row scheduling of this block"));
    }
    if (context_.chain != nullptr) return make_chain_rows(facts, context_.chain->of(last));
    const std::size_t num_rows = num_row_axes(facts);
    if (num_rows == 0) return split_single_axis(last);
    std::vector<LoopId> loops;
    int64_t extent = 1;
    for (std::size_t i = 0; i < num_rows; ++i) {
      loops.push_back(facts.spatial[i].loop);
      extent *= facts.spatial[i].extent;
    }
    LoopId fused = loops[0];
    if (loops.size() > 1) {
      PRUNERC_TRY(fused, context_.schedule.fuse(loops));
    }
    const int64_t tasks = std::max<int64_t>(1, context_.target.num_threads) * kTasksPerThread;
    PRUNERC_TRY(
        const std::vector<LoopId> parts,
        context_.schedule.split(fused, context_.cover(extent, {ceil_div(extent, tasks)}, 0)));
    task_ = parts[0];
    if (context_.target.num_threads > 1) {
      // Stages join the rows later; a loop that they cannot run under in parallel is better known
      // now.
      parallel_after_ = true;
    }
    return parts[1];
  }

  // The loops that the chain's blocks have in common, and the rows of a task below them.
  Result<LoopId> make_chain_rows(const BlockFacts& facts, const Chain::Axes& common) {
    std::vector<LoopId> order;
    for (const Axis& axis : common.outer_of(facts)) order.push_back(axis.loop);
    for (const Axis& axis : facts.spatial) {
      if (axis.iter != common.row) continue;
      PRUNERC_TRY(const std::vector<LoopId> parts,
                  context_.schedule.split(axis.loop, context_.chain->factors));
      order.insert(order.end(), parts.begin(), parts.end());
    }
    const LoopId row = order.back();
    for (const LoopId loop : context_.schedule.loops_of(blocks_.back())) {
      if (std::find(order.begin(), order.end(), loop) == order.end()) order.push_back(loop);
    }
    PRUNERC_TRY_VOID(context_.schedule.reorder(order));
    return row;
  }

  // One axis only: a stage without rows is cut into tasks along it.
  Result<LoopId> split_single_axis(BlockId last) {
    BlockFacts facts = facts_of(context_.schedule, last);
    if (!facts.reduce.empty()) return LoopId();
    if (facts.spatial.size() > 1 && !counts_units(facts, variant_) &&
        drop_unit_axes(context_, last).ok()) {
      facts = facts_of(context_.schedule, last);
    }
    if (facts.spatial.size() != 1) return LoopId();
    const int64_t extent = facts.spatial[0].extent;
    done_ = extent == 1;
    if (done_) return LoopId();
    const int64_t lanes =
        std::min(context_.target.lanes(facts.element_bytes), power_of_two(extent));
    const int64_t vectors = ceil_div(extent, lanes);
    const int64_t tasks = std::max<int64_t>(1, context_.target.num_threads) * kTasksPerThread;
    // Sizes are counted in vectors so that only the last task has a tail.
    std::vector<Int> factors = context_.cover(vectors, {ceil_div(vectors, tasks), 1}, kMaxUnroll);
    factors.push_back(Int(lanes));
    PRUNERC_TRY(const std::vector<LoopId> parts,
                context_.schedule.split(facts.spatial[0].loop, factors));
    PRUNERC_TRY_VOID(context_.schedule.vectorize(parts[3]));
    PRUNERC_TRY_VOID(context_.schedule.unroll(parts[2]));
    PRUNERC_TRY_VOID(parallelize(context_, {parts[0]}));
    done_ = true;
    return LoopId();
  }

  void vectorize_block(BlockId id) {
    if (parallel_after_) {
      parallel_after_ = false;
      static_cast<void>(context_.schedule.parallel(task_).ok());
    }
    if (done_) return;
    const ir::Block* block = find_block(context_.program(), id);
    if (block == nullptr) return;
    const schedule::Schedule before = context_.schedule.fork();
    const Result<void> done = is_reduction(*block) ? vectorize_reduction(id) : vectorize_stage(id);
    if (!done) context_.schedule = before;
  }

  int64_t lanes_of(BlockId id) const {
    return context_.target.lanes(facts_of(context_.schedule, id).element_bytes);
  }

  // The loop whose steps move the block's iteration variable `iter` by one, and its extent.
  Axis loop_of(BlockId id, const ir::IterVar& iter) const {
    const ir::LoopIndex index(context_.program());
    Axis axis;
    axis.var = iter.var->id;
    bool inside = !row_.valid();
    for (const ir::Loop* loop : index.enclosing_loops(id)) {
      if (!inside) {
        // A value per row is not a row.
        inside = loop->id == row_;
        continue;
      }
      const auto* extent = loop->extent.as<ir::IntImm>();
      if (extent == nullptr || loop->loop_kind != ir::LoopKind::kSerial) continue;
      if (step_of(iter.binding, loop->var->id) != 1 || extent->value == 1) continue;
      axis.loop = loop->id;
      axis.extent = extent->value;
    }
    return axis;
  }

  Result<void> vectorize_stage(BlockId id) {
    const ir::Block* block = find_block(context_.program(), id);
    Axis chosen;
    for (const ir::IterVar& iter : block->iters) {
      if (!is_contiguous(context_.program(), block->writes[0], iter.var->id)) continue;
      chosen = loop_of(id, iter);
    }
    if (!chosen.loop.valid()) return {};
    const int64_t lanes = lanes_of(id);
    PRUNERC_TRY_VOID(vectorize_loop(context_, chosen.loop, chosen.extent, lanes, 1));
    return {};
  }

  // Partial results for `unroll * lanes` interleaved parts of the reduction, combined at the end.
  Result<void> vectorize_reduction(BlockId id) {
    const ir::Block* block = find_block(context_.program(), id);
    Axis chosen;
    int64_t terms = 1;
    for (const ir::IterVar& iter : block->iters) {
      if (iter.kind != ir::IterKind::kReduce) continue;
      terms *= ir::constant_value(iter.extent).value_or(1);
      if (reads_contiguously(context_.program(), *block, iter.var->id)) chosen = loop_of(id, iter);
    }
    if (!chosen.loop.valid() || !variant_.rfactor) return {};
    const int64_t lanes = lanes_of(id);
    // A short axis still pays where each lane gets many terms along the others (pixels of a group).
    if (chosen.extent < lanes || terms < 2 * lanes) return {};
    const Int unroll = context_.pick(up_to({1, 2, 4}, chosen.extent / lanes), 2);
    PRUNERC_TRY(const BlockId partial, split_sum(context_, chosen.loop, unroll, lanes));
    const std::vector<LoopId> loops = context_.schedule.loops_of(partial);
    PRUNERC_TRY(const std::vector<LoopId> again,
                context_.schedule.split(loops.back(), {Int(-1), Int(lanes)}));
    PRUNERC_TRY_VOID(context_.schedule.vectorize(again[1]));
    PRUNERC_TRY_VOID(context_.schedule.unroll(again[0]));
    combine_lanes(context_, id, lanes);
    return {};
  }

  SketchContext& context_;
  const std::vector<BlockId>& blocks_;
  const Variant& variant_;
  LoopId task_, row_;  // loops over tasks, and over the rows of one
  bool parallel_after_ = false;
  bool done_ = false;
};

/// Partial results of a total: enough for all threads, few enough to be added up by one.
constexpr int64_t kMaxParts = 128;

// The outermost axis of a total in parts, each of which becomes an element of a partial result.
Result<BlockId> split_total(SketchContext& context, const BlockFacts& facts) {
  const Axis& outer = facts.reduce[0];
  const int64_t preferred = std::max<int64_t>(1, context.target.num_threads) * kTasksPerThread;
  const int64_t parts = std::min({preferred, outer.extent, kMaxParts});
  PRUNERC_TRY(const std::vector<LoopId> loops,
              context.schedule.split(
                  outer.loop, context.cover(outer.extent, {ceil_div(outer.extent, parts)}, 0)));
  return context.schedule.rfactor(loops[0], 0);
}

/// Vectors of columns that are reduced side by side.
constexpr int64_t kPreferredColumns = 4;

// A reduction into several buffers down the columns (argmax): vectors of columns walk down together.
Result<void> schedule_columns(SketchContext& context, BlockId id) {
  const BlockFacts facts = facts_of(context.schedule, id);
  if (facts.block == nullptr || !facts.trivial || facts.reduce.empty() ||
      facts.block->writes.size() < 2) {
    return error(Diag::kUnsupported, std::string("a block that reduces into one buffer"));
  }
  std::vector<LoopId> order;
  const Axis* columns = nullptr;
  for (const Axis& axis : facts.spatial) {
    if (is_contiguous(context.program(), facts.block->writes[0], axis.var) &&
        reads_contiguously(context.program(), *facts.block, axis.var)) {
      columns = &axis;
    } else {
      order.push_back(axis.loop);
    }
  }
  const int64_t lanes = context.target.lanes(facts.element_bytes);
  if (columns == nullptr || columns->extent < lanes) {
    return error(Diag::kUnsupported, std::string("a block without columns"));
  }
  const Int width = context.pick(up_to({lanes, 2 * lanes, 4 * lanes, 8 * lanes}, columns->extent),
                                 kPreferredColumns * lanes);
  PRUNERC_TRY(const std::vector<LoopId> parts,
              context.schedule.split(columns->loop, {Int(-1), width}));
  order.push_back(parts[0]);
  const std::vector<LoopId> tasks = order;
  for (const Axis& axis : facts.reduce) order.push_back(axis.loop);
  order.push_back(parts[1]);
  PRUNERC_TRY_VOID(context.schedule.reorder(order));
  PRUNERC_TRY_VOID(context.schedule.vectorize(parts[1]));
  const Result<LoopId> parallel = parallelize(context, tasks);
  return parallel.ok() ? Result<void>() : parallel.error();
}

// A total over everything has no rows: its outermost axis gives one partial result each, computed
// in parallel.
void schedule_total(SketchContext& context, BlockId id, const Variant& variant) {
  const BlockFacts facts = facts_of(context.schedule, id);
  if (!is_single(context, id, variant) || facts.reduce.empty()) return;
  const schedule::Schedule before = context.schedule.fork();
  const auto apply = [&]() -> Result<BlockId> {
    if (!counts_units(facts, variant)) PRUNERC_TRY_VOID(drop_unit_axes(context, id));
    return split_total(context, facts_of(context.schedule, id));
  };
  const Result<BlockId> partial = apply();
  if (partial) {
    static_cast<void>(schedule_rows(context, {*partial}, variant).ok());
  } else {
    context.schedule = before;
  }
}

}  // namespace

Result<void> schedule_rows(SketchContext& context, const std::vector<BlockId>& blocks,
                           const Variant& variant) {
  std::vector<BlockId> rows = blocks;
  if (blocks.size() > 1 && context.chain == nullptr) {
    // A total belongs to no row, and neither does what is made of totals.
    for (const BlockId id : blocks) {
      if (!is_single(context, id, variant)) continue;
      std::erase(rows, id);
      static_cast<void>(schedule_rows(context, {id}, variant).ok());
    }
    if (rows.empty()) return {};
  }
  const schedule::Schedule before = context.schedule.fork();
  if (rows.size() == 1) {
    const Result<void> columns = schedule_columns(context, rows[0]);
    if (columns.ok()) return columns;
    context.schedule = before;
    if (variant.rfactor) schedule_total(context, rows[0], variant);
  }
  const Result<void> done = RowRule(context, rows, variant).run();
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search
