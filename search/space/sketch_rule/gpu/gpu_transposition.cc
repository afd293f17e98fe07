// Rule "transposition" for GPUs: an elementwise block that reads along another axis than it writes.
//
//     for i { for j { Y[i, j] = f(X[j, i]) } }
//   ~>
//     for i0 * j0 bind(block.x) {
//       for .. ty bind(thread.y) tx bind(thread.x) { T[j1, i1] = X[j, i] }     along i
//       for .. ty bind(thread.y) tx bind(thread.x) { Y[i, j] = f(T[j1, i1]) }  along j
//     }
//
// Neighbours in a warp touch neighbours in memory both times; rows of T are of odd length, so that
// lanes that walk down a column meet no bank twice.
#include "ir/query.h"
#include "search/space/sketch_rule/gpu/gpu.h"

#include <algorithm>
#include <cstddef>
#include <string>

namespace prunerc::search {
namespace {

using ir::BlockId;
using ir::LoopId;
using schedule::Int;

constexpr int64_t kLanes = 32;
const std::vector<int64_t> kRows = {32, 64};
const std::vector<int64_t> kWarps = {4, 8, 16};

// The tile's elements, a warp along the last loop.
Result<void> bind_threads(schedule::Schedule& s, const std::vector<LoopId>& loops, Int warps) {
  PRUNERC_TRY(const LoopId all, s.fuse(loops));
  PRUNERC_TRY(const std::vector<LoopId> parts, s.split(all, {Int(-1), warps, Int(kLanes)}));
  PRUNERC_TRY_VOID(s.unroll(parts[0]));
  PRUNERC_TRY_VOID(s.bind(parts[2], "thread.x"));
  return s.bind(parts[1], "thread.y");
}

// Reads that go along `rows` while neighbours are written along `columns`.
std::vector<int> crossing_reads(const ir::Program& program, const BlockFacts& facts,
                                const Crossing& crossing) {
  std::vector<int> out;
  for (std::size_t i = 0; i < facts.block->reads.size(); ++i) {
    const ir::Access& access = facts.block->reads[i];
    // Of several subscripts of one buffer there is only the hull.
    const bool is_point =
        std::all_of(access.region.begin(), access.region.end(),
                    [](const ir::Range& range) { return ir::constant_value(range.extent) == 1; });
    const ir::Access dense = without_unit_tail(program, access);
    if (is_point && mentions(dense, crossing.columns.var) &&
        is_contiguous(dense, crossing.rows.var) && has_variable_subscripts(access))
      out.push_back(static_cast<int>(i));
  }
  return out;
}

// The copy's dimensions of extent 1 at its end go to its front: a row, which is padded, is its last one.
Result<void> move_unit_tail(schedule::Schedule& s, BlockId copy) {
  const ir::Access& written = find_block(s.program(), copy)->writes[0];
  const std::size_t rank = written.region.size();
  const std::size_t num_kept = without_unit_tail(s.program(), written).region.size();
  if (num_kept == rank) return {};
  std::string from, to;
  for (std::size_t d = 0; d < rank; ++d) {
    from += (d > 0 ? ", v" : "v") + std::to_string(d);
    to += (d > 0 ? ", v" : "v") + std::to_string((d + num_kept) % rank);
  }
  PRUNERC_TRY_VOID(s.transform_layout(copy, 0, "(" + from + ") -> (" + to + ")"));
  return {};
}

Result<void> transpose(SketchContext& context, BlockId block) {
  schedule::Schedule& s = context.schedule;
  const BlockFacts facts = facts_of(s, block);
  const std::optional<Crossing> crossing = find_crossing(s.program(), facts, kLanes);
  if (!crossing) return error(Diag::kUnsupported, std::string("a block that transposes nothing"));
  const std::vector<int> reads = crossing_reads(s.program(), facts, *crossing);
  if (reads.empty()) return error(Diag::kUnsupported, std::string("subscripts like these"));
  const Int height = context.pick(up_to(kRows, crossing->rows.extent), 32);
  const Int warps = context.pick(kWarps, 8);
  PRUNERC_TRY(const std::vector<LoopId> rows, s.split(crossing->rows.loop, {Int(-1), height}));
  PRUNERC_TRY(const std::vector<LoopId> columns,
              s.split(crossing->columns.loop, {Int(-1), Int(kLanes)}));
  std::vector<LoopId> order;
  for (const Axis& axis : facts.spatial) {
    const bool is_tiled = axis.iter == crossing->rows.iter || axis.iter == crossing->columns.iter;
    if (!is_tiled) order.push_back(axis.loop);
  }
  order.insert(order.end(), {rows[0], columns[0]});
  const std::vector<LoopId> tiles = order;
  order.insert(order.end(), {rows[1], columns[1]});
  PRUNERC_TRY_VOID(s.reorder(order));
  PRUNERC_TRY(const LoopId tile, s.fuse(tiles));
  for (const int read : reads) {
    PRUNERC_TRY(const BlockId copy, s.cache_read(block, read, ir::Scope::kShared));
    PRUNERC_TRY_VOID(move_unit_tail(s, copy));
    const ir::Access& written = find_block(s.program(), copy)->writes[0];
    const int rank = static_cast<int>(written.region.size());
    PRUNERC_TRY(const std::vector<LoopId> loops, s.compute_at(copy, tile));
    PRUNERC_TRY_VOID(bind_threads(s, loops, warps));
    PRUNERC_TRY_VOID(s.storage_align(copy, 0, rank - 2, 2, 1));
  }
  PRUNERC_TRY_VOID(bind_threads(s, {rows[1], columns[1]}, warps));
  return s.bind(tile, "block.x");
}

}  // namespace

Result<void> gpu_transposition(SketchContext& context, BlockId block) {
  const schedule::Schedule before = context.schedule.fork();
  const Result<void> done = transpose(context, block);
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search
