// Rule "dot": products whose operands are contiguous along the reduction only (A[i,k] * B[j,k],
// matrix times vector).
//
//     for i, j { for k { C[i,j] += A[i,k] * B[j,k] } }
//   ~>
//     for tasks parallel { for j1, i1 {
//       for k1 { for i2, j2 unrolled { for k2 vectorized { P[i,j,k2] += ... } } }
//       for i2, j2 unrolled { for k2 { C[i,j] += P[i,j,k2] } }         in groups of four
//     } }
//
// The rows of a tile share the loads of the operand that does not move with them, and hide the
// latency of the sums.

#include "search/space/sketch_rule/chain.h"

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

constexpr int64_t kMaxRows = 8;
/// Four by four accumulators: one load for two multiply-adds, and room in 32 registers.
constexpr int64_t kPreferredRows = 4;

const Axis* contiguous_axis(const ir::Program& program, const BlockFacts& facts) {
  const Axis* chosen = nullptr;
  for (const Axis& axis : facts.reduce) {
    if (reads_contiguously(program, *facts.block, axis.var)) chosen = &axis;
  }
  return chosen;
}

// A loop that stays outermost since the other blocks of a chain have it too.
bool is_common(const SketchContext& context, BlockId block, const Axis& axis) {
  return context.chain != nullptr && context.chain->of(block).is_outer(axis.iter);
}

struct Rows {
  LoopId task, tile, inner;
};

Result<Rows> tile_rows(SketchContext& context, const Axis& axis) {
  const int64_t tasks = makes_tasks(context) ? 4 : 1;
  const int64_t tiles = ceil_div(ceil_div(axis.extent, kPreferredRows), tasks);
  PRUNERC_TRY(const std::vector<LoopId> parts,
              context.schedule.split(
                  axis.loop, context.cover(axis.extent, {tiles, kPreferredRows}, kMaxRows)));
  return Rows{parts[0], parts[1], parts[2]};
}

/// The block that adds up the lanes has its own copies of the rows' loops, and one over the lanes.
Result<void> finish_sums(SketchContext& context, BlockId block, std::size_t num_rows,
                         int64_t lanes) {
  const std::vector<LoopId> loops = context.schedule.loops_of(block);
  for (std::size_t i = loops.size() - 1 - num_rows; i + 1 < loops.size(); ++i) {
    PRUNERC_TRY_VOID(context.schedule.unroll(loops[i]));
  }
  combine_lanes(context, block, lanes);
  return {};
}

Result<void> apply_dot(SketchContext& context, BlockId block, BlockId epilogue,
                       const Variant& variant) {
  const BlockFacts facts = facts_of(context.schedule, block);
  const Axis* axis = contiguous_axis(context.program(), facts);
  const int64_t lanes = context.target.lanes(facts.element_bytes);
  if (axis == nullptr || axis->extent < 2 * lanes || !variant.rfactor) {
    return error(Diag::kUnsupported, std::string("a dot product here"));
  }
  std::vector<Axis> rows, outer;
  for (std::size_t i = facts.spatial.size(); i > 0; --i) {
    const Axis& spatial = facts.spatial[i - 1];
    const bool wanted = rows.size() < 2 && spatial.extent > 1 &&
                        is_reused(*facts.block, spatial.var) && !is_common(context, block, spatial);
    (wanted ? rows : outer).push_back(spatial);
  }
  std::vector<LoopId> tasks, tiles, inner;
  for (std::size_t i = outer.size(); i > 0; --i) tasks.push_back(outer[i - 1].loop);
  for (const Axis& row : rows) {
    PRUNERC_TRY(const Rows made, tile_rows(context, row));
    tasks.push_back(made.task);
    tiles.push_back(made.tile);
    inner.push_back(made.inner);
  }
  PRUNERC_TRY(const std::vector<LoopId> parts,
              context.schedule.split(axis->loop, {Int(-1), Int(lanes)}));
  std::vector<LoopId> order = tasks;
  order.insert(order.end(), tiles.begin(), tiles.end());
  for (const Axis& reduce : facts.reduce) {
    order.push_back(reduce.iter == axis->iter ? parts[0] : reduce.loop);
  }
  order.insert(order.end(), inner.begin(), inner.end());
  order.push_back(parts[1]);
  PRUNERC_TRY_VOID(context.schedule.reorder(order));
  const auto rank = static_cast<int>(facts.block->writes[0].region.size());
  PRUNERC_TRY_VOID(context.schedule.rfactor(parts[1], rank));
  PRUNERC_TRY_VOID(context.schedule.vectorize(parts[1]));
  for (const LoopId row : inner) PRUNERC_TRY_VOID(context.schedule.unroll(row));
  PRUNERC_TRY_VOID(finish_sums(context, block, inner.size(), lanes));
  if (epilogue.valid()) {
    // In a chain all rows may be loops that its blocks have in common.
    const LoopId under = tiles.empty() ? tasks.back() : tiles.back();
    PRUNERC_TRY(const std::vector<LoopId> last,
                context.schedule.reverse_compute_at(epilogue, under));
    for (const LoopId loop : last) PRUNERC_TRY_VOID(context.schedule.unroll(loop));
  }
  if (makes_tasks(context)) PRUNERC_TRY_VOID(parallelize(context, tasks));
  return {};
}

}  // namespace

bool can_tile_dot(const schedule::Schedule& schedule, BlockId block) {
  const BlockFacts facts = facts_of(schedule, block);
  if (facts.block == nullptr || !facts.trivial || facts.block->writes.size() != 1) return false;
  bool reused = false;
  for (const Axis& axis : facts.spatial) {
    reused = reused || (axis.extent > 1 && is_reused(*facts.block, axis.var));
  }
  return reused && contiguous_axis(schedule.program(), facts) != nullptr;
}

Result<void> tile_dot(SketchContext& context, BlockId block, BlockId epilogue,
                      const Variant& variant) {
  const schedule::Schedule before = context.schedule.fork();
  const Result<void> done = apply_dot(context, block, epilogue, variant);
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search
