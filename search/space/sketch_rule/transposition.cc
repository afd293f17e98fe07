// Rule "transposition": an elementwise block that reads along another axis than it writes.
//
//     for i { for j { Y[i, j] = f(X[j, i]) } }
//   ~>
//     for i0 * j0 parallel { for i1 { for j1 {
//       for i2 in 16 unrolled { for j2 in 16 vectorized { Y[i, j] = f(X[j, i]) } }
//     } } }
//
// Lines of both are whole while they are in the first-level cache, and code generation makes the columns of
// the innermost tile by shuffles (codegen/cpu/emit_transpose.cc).
#include "search/space/sketch_rule/rule.h"

namespace prunerc::search {
namespace {

using ir::LoopId;
using schedule::Int;

constexpr int64_t kMaxTile = 16;
constexpr int64_t kPreferredRows = 4, kPreferredColumns = 2;

// The axis that some operand lies along, while the vectors `along` cross it; -1 if there is none.
int crossed_axis(const ir::Program& program, const BlockFacts& facts, const Axis& along) {
  for (const ir::Access& access : facts.block->reads) {
    const ir::Access dense = without_unit_tail(program, access);
    if (!mentions(dense, along.var)) continue;
    if (step_of(dense.region.back().min, along.var) != 0) continue;
    for (std::size_t i = 0; i < facts.spatial.size(); ++i) {
      if (is_contiguous(dense, facts.spatial[i].var)) return static_cast<int>(i);
    }
  }
  return -1;
}

int written_axis(const ir::Program& program, const BlockFacts& facts) {
  for (std::size_t i = 0; i < facts.spatial.size(); ++i) {
    if (is_contiguous(program, facts.block->writes[0], facts.spatial[i].var))
      return static_cast<int>(i);
  }
  return -1;
}

}  // namespace

std::optional<Crossing> find_crossing(const ir::Program& program, const BlockFacts& facts,
                                      int64_t least) {
  if (facts.block == nullptr || !facts.trivial || !facts.reduce.empty()) return std::nullopt;
  const int column = written_axis(program, facts);
  if (column < 0) return std::nullopt;
  const Axis& columns = facts.spatial[static_cast<std::size_t>(column)];
  const int row = crossed_axis(program, facts, columns);
  if (row < 0) return std::nullopt;
  const Axis& rows = facts.spatial[static_cast<std::size_t>(row)];
  if (rows.extent < least || columns.extent < least) return std::nullopt;
  return Crossing{rows, columns};
}

Result<void> tile_transposition(SketchContext& context, ir::BlockId block) {
  const BlockFacts facts = facts_of(context.schedule, block);
  const int64_t lanes = context.target.lanes(facts.element_bytes);
  const std::optional<Crossing> crossing = find_crossing(context.program(), facts, lanes);
  if (!crossing) return error(Diag::kUnsupported, std::string("a block that transposes nothing"));
  const auto& [rows, columns] = *crossing;
  const schedule::Schedule before = context.schedule.fork();
  const auto apply = [&]() -> Result<void> {
    schedule::Schedule& s = context.schedule;
    const auto cut = [&](const Axis& axis, int64_t preferred) {
      std::vector<Int> factors = context.cover(ceil_div(axis.extent, lanes), {preferred}, kMaxTile);
      factors.push_back(Int(lanes));
      return s.split(axis.loop, factors);
    };
    PRUNERC_TRY(const std::vector<LoopId> r, cut(rows, kPreferredRows));
    PRUNERC_TRY(const std::vector<LoopId> c, cut(columns, kPreferredColumns));
    std::vector<LoopId> tasks;
    for (const Axis& axis : facts.spatial) {
      if (axis.iter != rows.iter && axis.iter != columns.iter) tasks.push_back(axis.loop);
    }
    tasks.insert(tasks.end(), {r[0], c[0]});
    std::vector<LoopId> order = tasks;
    order.insert(order.end(), {r[1], c[1], r[2], c[2]});
    PRUNERC_TRY_VOID(s.reorder(order));
    PRUNERC_TRY_VOID(s.vectorize(c[2]));
    PRUNERC_TRY_VOID(s.unroll(r[2]));
    PRUNERC_TRY_VOID(parallelize(context, tasks));
    return {};
  };
  Result<void> done = apply();
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search
