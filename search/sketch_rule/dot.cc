// Rule "dot": products whose operands are contiguous along the reduction only (A[i,k] * B[j,k], matrix times vector).
//
//     for i, j { for k { C[i,j] += A[i,k] * B[j,k] } }
//   ~>
//     for i, j { for k1 { for k2 { P[i,j,k2] += ... } } }    tiled as in tile.cc, k2 vectorized, rows along j
//     for i, j { for k2 { C[i,j] += P[i,j,k2] } }            at the tile, in groups of four
//
// Several rows share the loads of the operand that does not move with them, and hide the latency of the sums.
#include "search/sketch_rule/rule.h"

namespace prunerc::search {
namespace {

const Axis* contiguous_axis(const BlockFacts& facts) {
  const Axis* chosen = nullptr;
  for (const Axis& axis : facts.reduce) {
    if (reads_contiguously(*facts.block, axis.var)) chosen = &axis;
  }
  return chosen;
}

Result<void> apply_dot(SketchContext& context, ir::BlockId block, const Variant& variant) {
  const BlockFacts facts = facts_of(context.schedule, block);
  const Axis* axis = contiguous_axis(facts);
  const int64_t lanes = context.target.lanes(facts.element_bytes);
  if (axis == nullptr || axis->extent < 2 * lanes || !variant.rfactor) {
    return error(Diag::kUnsupported, std::string("a dot product here"));
  }
  PRUNERC_TRY(const ir::BlockId partial,
              split_sum(context, axis->loop, schedule::Int(1), lanes));
  Variant plain = variant;
  plain.write_cache = true;
  return tile_block(context, partial, block, plain);
}

}  // namespace

bool can_tile_dot(const schedule::Schedule& schedule, ir::BlockId block) {
  const BlockFacts facts = facts_of(schedule, block);
  if (facts.block == nullptr || !facts.trivial || facts.block->writes.size() != 1) return false;
  bool reused = false;
  for (const Axis& axis : facts.spatial) {
    reused = reused || (axis.extent > 1 && is_reused(*facts.block, axis.var));
  }
  return reused && contiguous_axis(facts) != nullptr;
}

Result<void> tile_dot(SketchContext& context, ir::BlockId block, const Variant& variant) {
  const schedule::Schedule before = context.schedule.fork();
  const Result<void> done = apply_dot(context, block, variant);
  if (!done) context.schedule = before;
  return done;
}

}  // namespace prunerc::search
