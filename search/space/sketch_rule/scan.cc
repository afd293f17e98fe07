// Rule "scan": running sums and the like, which are defined by quadratic work.
//
//     for i { for j { for k { Y[i, j] += select(k <= j, X[i, k], 0) } } }
//   ~>
//     for i0 parallel { for j { for i1 in 8 unrolled { Y[i, j] = Y[i, j - 1] + X[i, j] } } }
//
// Several rows side by side hide that each element waits for the one before. Rows that lie along the
// vectors (sums down the columns) are vectors of them.
#include "search/space/sketch_rule/rule.h"

#include <algorithm>

namespace prunerc::search {
namespace {

using ir::LoopId;
using schedule::Int;

constexpr int64_t kMaxRows = 16;
constexpr int64_t kPreferredRows = 8;
constexpr int64_t kPreferredVectors = 4;

// The spatial axis that the sum runs along is the one that a select bounds the reduction by: the primitive
// tells, so each is tried.
Result<void> scan_along(SketchContext& context, ir::BlockId block, const BlockFacts& facts,
                        std::size_t along) {
  schedule::Schedule& s = context.schedule;
  std::vector<LoopId> rows;
  int64_t extent = 1;
  const Axis* contiguous = nullptr;
  for (std::size_t i = 0; i < facts.spatial.size(); ++i) {
    if (i == along) continue;
    const Axis& axis = facts.spatial[i];
    if (is_contiguous(context.program(), facts.block->writes[0], axis.var)) {
      contiguous = &axis;
      continue;
    }
    rows.push_back(axis.loop);
    extent *= axis.extent;
  }
  const LoopId running = facts.spatial[along].loop, reduced = facts.reduce[0].loop;
  std::vector<LoopId> tasks, inner;
  if (contiguous != nullptr) {
    const int64_t lanes = context.target.lanes(facts.element_bytes);
    const int64_t width = contiguous->extent >= lanes ? lanes : power_of_two(contiguous->extent);
    // All registers may be sums: a task of whole rows reads memory as it lies.
    std::vector<Int> factors =
        context.cover(ceil_div(contiguous->extent, width), {kPreferredVectors},
                      std::max<int64_t>(kMaxRows, context.target.num_vector_registers));
    factors.push_back(Int(width));
    PRUNERC_TRY(const std::vector<LoopId> parts, s.split(contiguous->loop, factors));
    tasks = rows;
    tasks.push_back(parts[0]);
    inner = {parts[1], parts[2]};
  } else if (!rows.empty()) {
    std::vector<LoopId> order = rows;
    order.insert(order.end(), {running, reduced});
    PRUNERC_TRY_VOID(s.reorder(order));
    LoopId fused = rows[0];
    if (rows.size() > 1) {
      PRUNERC_TRY(fused, s.fuse(rows));
    }
    PRUNERC_TRY(const std::vector<LoopId> parts,
                s.split(fused, context.cover(extent, {kPreferredRows}, kMaxRows)));
    tasks = {parts[0]};
    inner = {parts[1]};
  }
  std::vector<LoopId> order = tasks;
  order.insert(order.end(), {running, reduced});
  order.insert(order.end(), inner.begin(), inner.end());
  PRUNERC_TRY_VOID(s.reorder(order));
  if (contiguous != nullptr) PRUNERC_TRY_VOID(s.vectorize(inner[1]));
  if (!inner.empty()) PRUNERC_TRY_VOID(s.unroll(inner[0]));
  PRUNERC_TRY_VOID(parallelize(context, tasks));
  return s.scan(block);
}

}  // namespace

Result<void> schedule_scan(SketchContext& context, ir::BlockId block) {
  const BlockFacts facts = facts_of(context.schedule, block);
  if (facts.block == nullptr || !facts.trivial || facts.reduce.size() != 1) {
    return error(Diag::kUnsupported, std::string("a block that is no running reduction"));
  }
  const schedule::Schedule before = context.schedule.fork();
  Result<void> done = error(Diag::kUnsupported, std::string("a block of one value"));
  for (std::size_t i = 0; i < facts.spatial.size(); ++i) {
    done = scan_along(context, block, facts, i);
    if (done) return done;
    context.schedule = before;
  }
  return done;
}

}  // namespace prunerc::search
