#include "schedule/legality/concurrency.h"

#include "ir/thread_axis.h"
#include "ir/visit.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/instance_order.h"
#include "schedule/legality/loop_dependence.h"

#include <algorithm>
#include <string>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

Privatization privatization_of(LoopKind kind) {
  if (kind == LoopKind::kVectorized) return Privatization::kNever;
  // Threads of a block see one copy of its shared memory.
  const bool inside_block = is_thread_axis(kind) && !is_block_axis(kind);
  return inside_block ? Privatization::kUnlessShared : Privatization::kAlways;
}

Error no_combination(const Loop& loop, const Block& block, LoopKind kind) {
  return error(Diag::kCrossThreadReduction, loop.id, block.id, std::string(to_string(kind)));
}

// The block accumulates over the loop alone: any order of the loop's iterations gives the same.
Result<void> check_combined(IrBuilder& b, const Program& program, const Site& site,
                            const LeafBlock& leaf, LoopKind kind) {
  const Loop& loop = *site.loop();
  const Block& block = *leaf.block;
  const bool feeds_other =
      std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
        return iter.kind != IterKind::kReduce && mentions(iter.binding, loop.var->id);
      });
  if (!is_lane_axis(kind) || feeds_other) return no_combination(loop, block, kind);
  const std::string fault = order_fault(b, program, block);
  if (!fault.empty()) return error(Diag::kBlockOrderFixed, block.id, fault);
  VarRanges ranges = ranges_at(program, site);
  // Loops around that share the reduction say where it begins.
  std::vector<const Loop*> loops;
  for (const Loop* outer : site.outer_loops()) {
    if (feeds_reduction(*outer, block)) loops.push_back(outer);
  }
  loops.push_back(&loop);
  loops.insert(loops.end(), leaf.loops.begin(), leaf.loops.end());
  for (const Loop* inner : leaf.loops) ranges.bind(inner->var, inner->extent);
  return check_instances_once(b, block, loops, ranges);
}

// What `check_concurrent` says, of the loop's blocks.
Result<void> check_iterations(const Program& program, const Site& site, LoopKind kind) {
  const Loop* loop = site.loop();
  IrBuilder b(program);
  const std::vector<LeafBlock> blocks = leaves(loop->body);
  std::vector<BufferId> combined;
  for (const LeafBlock& leaf : blocks) {
    if (!is_thread_axis(kind) || !feeds_reduction(*loop, *leaf.block)) continue;
    PRUNERC_TRY_VOID(check_combined(b, program, site, leaf, kind));
    for (const Access& write : leaf.block->writes) {
      combined.push_back(write.buffer);
      // Whoever stands beside it would see the sum of some threads only.
      for (const LeafBlock& other : blocks) {
        if (other.block == leaf.block) continue;
        if (reads(*other.block, write.buffer) || writes(*other.block, write.buffer)) {
          return error(Diag::kBlocksDepend, loop->id, quoted_name(program, write.buffer));
        }
      }
    }
  }
  const BufferId buffer = dependent_buffer(b, program, site, {&loop, 1}, privatization_of(kind),
                                           Effort::kExact, combined);
  if (buffer.valid()) {
    return error(Diag::kBlocksDepend, loop->id, quoted_name(program, buffer));
  }
  return {};
}

}  // namespace

Result<void> check_concurrent(const Program& program, const Site& site, LoopKind kind) {
  PRUNERC_TRY_VOID(check_holds_blocks(*site.loop()));
  return on_instance(program, [&] { return check_iterations(program, site, kind); });
}

Result<void> recheck_concurrent(const Program& program, const std::vector<LoopId>& loops) {
  for (const LoopId id : loops) {
    PRUNERC_TRY(const Site site, find_loop(program, id));
    PRUNERC_TRY_VOID(check_concurrent(program, site, site.loop()->loop_kind));
  }
  return {};
}

Result<void> recheck_concurrent_around(const Program& rewritten, const Site& old_place) {
  std::vector<LoopId> left;
  for (const LoopId id : concurrent_loops(old_place)) {
    if (find_loop(rewritten, id).ok()) left.push_back(id);
  }
  return recheck_concurrent(rewritten, left);
}

std::vector<LoopId> concurrent_loops(const Site& site) {
  std::vector<LoopId> out;
  for (Stmt s : site.path) {
    const Loop* loop = s.as<Loop>();
    if (loop != nullptr && is_concurrent(loop->loop_kind)) out.push_back(loop->id);
  }
  return out;
}

std::vector<LoopId> concurrent_loops_in(Stmt s) {
  std::vector<LoopId> out;
  walk(
      s,
      [&](Stmt part) {
        const Loop* loop = part.as<Loop>();
        if (loop != nullptr && is_concurrent(loop->loop_kind)) out.push_back(loop->id);
        return part.as<Block>() == nullptr;
      },
      [](Expr) {});
  return out;
}

}  // namespace prunerc::schedule
