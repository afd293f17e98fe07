#include "schedule/rewrite/move.h"

#include "ir/analysis/region.h"
#include "ir/arith/simplify.h"
#include "ir/thread_axis.h"
#include "schedule/legality/access_region.h"
#include "schedule/legality/concurrency.h"
#include "schedule/legality/lifetime.h"
#include "schedule/rewrite/attributes.h"

#include <algorithm>
#include <string>
#include <utility>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

Result<void> Move::find(BlockId block_id, LoopId loop_id) {
  PRUNERC_TRY(place_, dataflow_.find(block_id));
  PRUNERC_TRY(block_site_, find_block(program_, block_id));
  PRUNERC_TRY(loop_site_, find_loop(program_, loop_id));
  if (loop_site_.scope() != nullptr) return error(Diag::kBlockNested, loop_site_.scope()->id);
  PRUNERC_TRY_VOID(check_holds_blocks(*loop_site_.loop()));
  for (const Loop* loop : block().loops) {
    if (loop->id == loop_id) return error(Diag::kBlockAlreadyInside, block_id, loop_id);
  }
  span_ = dataflow_.under(loop_id);
  outer_ = loop_site_.outer_loops();
  outer_.push_back(loop_site_.loop());
  for (const Loop* loop : outer_) {
    PRUNERC_TRY_VOID(check_extent(*loop));
    if (loop->loop_kind == LoopKind::kVectorized) {
      return error(Diag::kLoopNotSerial, loop->id, std::string(to_string(loop->loop_kind)));
    }
    if (is_concurrent(loop->loop_kind)) concurrent_.push_back(loop->id);
  }
  ranges_ = ranges_at(program_, loop_site_);
  return {};
}

void Move::find_neighbour() {
  const Stmt body = loop_site_.loop()->body;
  const Block& mine = *block().block;
  for (Stmt child : children_of(body)) {
    for (const Block* other : leaf_blocks(child)) {
      bool related = false;
      if (direction_ == Direction::kProducer) {
        related = !neighbour_.defined() && reads(*other, mine.writes[0].buffer);
      } else {
        for (const Access& access : mine.reads) related |= writes(*other, access.buffer);
      }
      if (related) neighbour_ = child;
    }
  }
}

bool Move::box_under_loop(BufferId buffer, Touches touches, BufferRegion* out) {
  bool any = false;
  for (std::size_t i = span_.first; i < span_.last; ++i) {
    LeafBlock inner = dataflow_[i];
    inner.loops.erase(inner.loops.begin(),
                      inner.loops.begin() + static_cast<std::ptrdiff_t>(outer_.size()));
    for (const Access& access :
         touches == Touches::kWrites ? inner.block->writes : inner.block->reads) {
      if (access.buffer != buffer) continue;
      BufferRegion box = access_box(b(), inner, access, ranges_);
      *out = any ? hull(b(), *out, box, ranges_) : std::move(box);
      any = true;
    }
  }
  return any;
}

Result<void> Move::check_open(const std::vector<IterRange>& of_witness) const {
  const bool by_map = std::any_of(of_witness.begin(), of_witness.end(),
                                  [](const IterRange& range) { return range.by_map; });
  if (!by_map) return {};
  return error(Diag::kParamOperand,
               "moving block @B" + std::to_string(block().block->id.value) +
                   ", whose subscripts are more than variables,",
               std::string(program_.domain().names[0]));
}

// The block under its new loops.
void Move::build(const std::vector<IterRange>& iter_ranges) {
  Block copy = *block().block;
  std::vector<IterVar> iters(copy.iters.begin(), copy.iters.end());
  std::vector<const Var*> vars;
  Expr guard;
  for (std::size_t i = 0; i < iters.size(); ++i) {
    const Var* var = b().fresh_var("ax" + std::to_string(i));
    vars.push_back(var);
    new_loops_.push_back(b().fresh_loop_id());
    ranges_.bind(var, iter_ranges[i].extent);
    iters[i].binding = iter_ranges[i].min.defined()
                           ? simplify(b(), b().add(iter_ranges[i].min, var), ranges_)
                           : Expr(var);
    const Expr bounds = bounds_guard(b(), iters[i], iter_ranges[i], ranges_);
    if (!bounds.defined()) continue;
    guard = conjoin(b(), guard, bounds);
  }
  copy.iters = iters;
  copy.guard = guard;
  nest_ = b().block(copy);
  moved_.block = nest_.as<Block>();
  for (std::size_t i = iters.size(); i-- > 0;) {
    nest_ = make_loop(b(), vars[i], iter_ranges[i].extent, nest_, new_loops_[i]);
  }
  moved_.loops = outer_;
  Stmt s = nest_;
  for (const Loop* loop = s.as<Loop>(); loop != nullptr; loop = loop->body.as<Loop>()) {
    moved_.loops.push_back(loop);
  }
}

bool Move::covered_by(const LeafBlock& writer, const Access& read, std::size_t shared) {
  VarRanges ranges(program_.domain());
  for (std::size_t i = 0; i < shared; ++i) ranges.bind(outer_[i]->var, outer_[i]->extent);
  auto inside = [&](const LeafBlock& leaf) {
    return LeafBlock{leaf.block,
                     {leaf.loops.begin() + static_cast<std::ptrdiff_t>(shared), leaf.loops.end()}};
  };
  const LeafBlock from = inside(writer);
  const BufferRegion needed = access_box(b(), inside(moved_), read, ranges);
  const BufferRegion clipped = clip_to_buffer(b(), needed, ranges);
  for (const Access& write : from.block->writes) {
    if (write.buffer != read.buffer) continue;
    const BufferRegion made = access_box(b(), from, write, ranges);
    const bool contains = covers(b(), made, needed, ranges) == Proof::kYes ||
                          covers(b(), made, clipped, ranges) == Proof::kYes;
    if (contains && writes_whole_box(b(), from, write, ranges)) return true;
  }
  return false;
}

// Each source must be complete in the iteration of the loops shared with its writers, by one of those
// that share the most.
Result<void> Move::check_covered() {
  PRUNERC_TRY_VOID(check_final_below(b(), dataflow_, place_, outer_, Covered::kByDeepest));
  for (const Access& read : moved_.block->reads) {
    std::size_t most = 0;
    bool covered = false;
    for (const std::size_t place : dataflow_.writers(read.buffer)) {
      if (place == place_) continue;
      const LeafBlock& writer = dataflow_[place];
      const std::size_t shared = shared_loops(writer.loops, outer_);
      if (shared == 0 || shared < most) continue;
      covered = (covered && shared == most) || covered_by(writer, read, shared);
      most = shared;
    }
    if (most > 0 && !covered) {
      return error(Diag::kRegionNotCovered, moved_.block->id,
                   std::string(program_.buffer(read.buffer).name), loop());
    }
  }
  return {};
}

Result<void> Move::plan(BlockId block_id, LoopId loop_id) {
  PRUNERC_TRY_VOID(find(block_id, loop_id));
  PRUNERC_TRY_VOID(check_neighbours());
  PRUNERC_TRY_VOID(check_sole_writer(dataflow_, place_));
  PRUNERC_TRY_VOID(check_sources_final(b(), dataflow_, place_));
  PRUNERC_TRY_VOID(check_movable(b(), dataflow_, place_));
  find_neighbour();
  PRUNERC_TRY(const std::vector<IterRange> ranges, iter_ranges());
  build(ranges);
  return on_instance(program_, [&] { return check_covered(); });
}

Applied Move::apply() {
  // The loop does not enclose the block, so taking the block out leaves the loop's own nodes as
  // they are.
  const Stmt without = replace_at(b(), block_site_, {});
  const Site site = find_loop_in(without, loop());
  Loop copy = *site.loop();
  const Stmt beside = direction_ == Direction::kProducer ? b().seq({nest_, neighbour_})
                                                         : b().seq({neighbour_, nest_});
  std::vector<Stmt> children = children_of(copy.body);
  *std::find_if(children.begin(), children.end(),
                [&](Stmt child) { return child.is(neighbour_); }) = beside;
  copy.body = children.size() == 1 ? beside : b().seq(children);
  Applied out;
  out.program = b().finish(replace_at(b(), site, b().loop(copy)));
  out.outputs.assign(new_loops_.begin(), new_loops_.end());
  return out;
}

Result<Applied> Move::run(BlockId block_id, LoopId loop_id) {
  PRUNERC_TRY_VOID(plan(block_id, loop_id));
  Applied moved = apply();
  // Iterations of concurrent loops around must stay independent: a question about the result.
  PRUNERC_TRY_VOID(recheck_concurrent(moved.program, concurrent_));
  PRUNERC_TRY_VOID(recheck_concurrent_around(moved.program, block_site_));
  // The last access outside of loops may have gone; what a producer makes its readers find there.
  if (direction_ == Direction::kConsumer) {
    PRUNERC_TRY_VOID(check_nothing_lost(program_, moved.program, block_id));
  }
  return moved;
}

}  // namespace prunerc::schedule
