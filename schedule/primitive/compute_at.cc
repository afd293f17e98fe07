// compute_at(P, loop):                                    reverse_compute_at(C, loop):
//     for i in N { P: T[i] = f(i) }                           for o in N/4 @L { for i { P: T[o*4+i]
//     = f } } for o in N/4 @L { for i { C reads T[o*4+i-1..] } }      for j in N { C: Y[j] =
//     g(T[j]) }
//   ~>                                                      ~>
//     for o in N/4 @L {                                       for o in N/4 @L {
//       for ax in 6 { P: T[o*4-1+ax]  where in range }          for i { P: T[o*4+i] = f }
//       for i { C reads T[o*4+i-1..] } }                        for ax in 4 { C: Y[o*4+ax] =
//       g(T[o*4+ax]) } }
//
// The block gets one new loop per iteration variable. compute_at: spatial variables run over the
// hull of what the readers under the loop need; reverse_compute_at: over what the writers under the
// loop have produced. Reduction variables, and variables that no subscript of the form `var +
// constant` ties down, run over their whole extent. Where the interval may leave the iteration
// domain, a guard cuts it.
//
// Requires: the block stands in no other block, may be repeated and reordered, covers its iteration
// domain, is the sole writer of what it writes, and its sources have final values (flow.h).
// compute_at: it writes one intermediate whose readers are all under the loop. reverse_compute_at:
// it follows the loop, and so do no writers of its sources. For both: in the new place each source
// is covered by writes of the same iteration of the loops shared with its writer, none of which is
// a reduction loop of it. Cost: O(accesses of the blocks involved).
#include "ir/analysis/region.h"
#include "ir/analysis/simplify.h"
#include "ir/thread_axis.h"
#include "ir/visit.h"
#include "schedule/legality/access_region.h"
#include "schedule/legality/concurrency.h"
#include "schedule/legality/dataflow.h"
#include "schedule/legality/iter_domain.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/move.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class MovePlanner {
 public:
  MovePlanner(const Program& program, Direction direction, const Program* witness = nullptr)
      : program_(program), witness_(witness), flow_(program), direction_(direction) {
    plan_.builder = std::make_unique<IrBuilder>(program);
    plan_.direction = direction;
  }
  Result<MovePlan> plan(BlockId block, LoopId loop);

 private:
  IrBuilder& b() { return *plan_.builder; }
  const LeafBlock& block() const { return flow_[place_]; }
  Result<void> find(BlockId block, LoopId loop);
  Result<void> check_producer();
  Result<void> check_consumer();
  void find_neighbour();
  bool box_under_loop(BufferId buffer, bool of_writes, BufferRegion* out);
  bool decides(const Access& read);
  // A read, and where its block's variables run if it decides.
  struct Decided {
    std::size_t read = 0;
    std::vector<IterRange> ranges;
  };
  std::optional<Decided> deciding_read();
  std::optional<Decided> as_witness();
  std::vector<IterRange> iter_ranges();
  void build(const std::vector<IterRange>& ranges);
  Result<void> check_covered();
  bool covered_by(const LeafBlock& writer, const Access& read, std::size_t shared);

  const Program& program_;
  const Program* witness_;  // null: the program has no tile parameters
  Flow flow_;
  Direction direction_;
  MovePlan plan_;
  std::size_t place_ = 0;
  Flow::Span span_;  // blocks under the loop
  Site loop_site_;
  std::vector<const Loop*> outer_;  // loops around the new place, the target included
  VarRanges ranges_;                // of those
  LeafBlock moved_;                 // the block in its new place, with all loops
};

Result<void> MovePlanner::find(BlockId block_id, LoopId loop_id) {
  PRUNERC_TRY(place_, flow_.find(block_id));
  PRUNERC_TRY(plan_.block_site, find_block(program_, block_id));
  PRUNERC_TRY(loop_site_, find_loop(program_, loop_id));
  plan_.loop = loop_id;
  if (loop_site_.scope() != nullptr) return error(Diag::kBlockNested, loop_site_.scope()->id);
  PRUNERC_TRY_VOID(check_holds_blocks(*loop_site_.loop()));
  for (const Loop* loop : block().loops) {
    if (loop->id == loop_id) return error(Diag::kBlockAlreadyInside, block_id, loop_id);
  }
  span_ = flow_.under(loop_id);
  outer_ = loop_site_.outer_loops();
  outer_.push_back(loop_site_.loop());
  for (const Loop* loop : outer_) {
    PRUNERC_TRY_VOID(check_extent(*loop));
    if (loop->loop_kind == LoopKind::kVectorized) {
      return error(Diag::kLoopNotSerial, loop->id, std::string(to_string(loop->loop_kind)));
    }
    if (is_concurrent(loop->loop_kind)) plan_.concurrent.push_back(loop->id);
  }
  ranges_ = ranges_at(program_, loop_site_);
  return {};
}

Result<void> MovePlanner::check_producer() {
  const Block& mine = *block().block;
  if (mine.writes.size() != 1) {
    return error(Diag::kBlockNotSimple, mine.id, std::string("write one buffer"));
  }
  const Buffer& buffer = program_.buffer(mine.writes[0].buffer);
  if (buffer.role != BufferRole::kIntermediate) {
    return error(Diag::kBufferNotIntermediate, std::string(buffer.name));
  }
  bool any = false;
  for (const std::size_t reader : flow_.readers(buffer.id)) {
    if (reader == place_) continue;
    any = true;
    if (reader < span_.first || reader >= span_.last || reader < place_) {
      return error(Diag::kBlockConsumerOutside, flow_[reader].block->id, mine.id, plan_.loop);
    }
  }
  if (!any) return error(Diag::kBlockNoConsumer, mine.id, std::string("consumer"), plan_.loop);
  return {};
}

Result<void> MovePlanner::check_consumer() {
  const Block& mine = *block().block;
  bool any = false;
  for (const Access& access : mine.reads) {
    for (const std::size_t writer : flow_.writers(access.buffer)) {
      if (writer == place_) continue;
      any |= writer >= span_.first && writer < span_.last;
      if (writer >= span_.last) {
        return error(Diag::kBlockProducerLate, mine.id, flow_[writer].block->id);
      }
    }
  }
  if (!any || place_ < span_.last) {
    return error(Diag::kBlockNoConsumer, mine.id, std::string("producer"), plan_.loop);
  }
  return {};
}

// The first child of the loop's body that reads what a producer writes; the last that writes what a
// consumer reads.
void MovePlanner::find_neighbour() {
  const Stmt body = loop_site_.loop()->body;
  const Seq* seq = body.as<Seq>();
  const std::vector<Stmt> children = seq == nullptr
                                         ? std::vector<Stmt>{body}
                                         : std::vector<Stmt>(seq->stmts.begin(), seq->stmts.end());
  const Block& mine = *block().block;
  for (Stmt child : children) {
    for (const Block* other : leaf_blocks(child)) {
      bool related = false;
      if (direction_ == Direction::kProducer) {
        related = !plan_.neighbour.defined() && reads(*other, mine.writes[0].buffer);
      } else {
        for (const Access& access : mine.reads) related |= writes(*other, access.buffer);
      }
      if (related) plan_.neighbour = child;
    }
  }
}

// Hull of what the blocks under the loop do to a buffer, in terms of the loops around the new
// place.
bool MovePlanner::box_under_loop(BufferId buffer, bool of_writes, BufferRegion* out) {
  bool any = false;
  for (std::size_t i = span_.first; i < span_.last; ++i) {
    LeafBlock inner = flow_[i];
    inner.loops.erase(inner.loops.begin(),
                      inner.loops.begin() + static_cast<std::ptrdiff_t>(outer_.size()));
    for (const Access& access : of_writes ? inner.block->writes : inner.block->reads) {
      if (access.buffer != buffer) continue;
      BufferRegion box = access_box(b(), inner, access, ranges_);
      *out = any ? hull(b(), *out, box, ranges_) : std::move(box);
      any = true;
    }
  }
  return any;
}

// Does every instance of the consumer find the elements of `read` written in some iteration of the
// loop? Then it may run there and nowhere else. An instance that reads nothing (a padded border)
// would be lost otherwise.
bool MovePlanner::decides(const Access& read) {
  bool whole = false;
  for (const std::size_t place : flow_.writers(read.buffer)) {
    if (place < span_.first || place >= span_.last) return false;
    const LeafBlock& writer = flow_[place];
    for (const Access& write : writer.block->writes) {
      if (whole || write.buffer != read.buffer) continue;
      whole = covers_domain(b(), program_, writer) &&
              writes_whole_domain_box(b(), *writer.block, write) &&
              covers(b(), domain_box(b(), *writer.block, write),
                     domain_box(b(), *block().block, read), VarRanges()) == Proof::kYes;
    }
  }
  return whole;
}

std::vector<IterRange> MovePlanner::iter_ranges() {
  const Block& mine = *block().block;
  BufferRegion box;
  if (direction_ == Direction::kProducer) {
    box_under_loop(mine.writes[0].buffer, /*of_writes=*/false, &box);
    std::vector<IterRange> found = solve_iters(b(), mine, mine.writes[0], box, ranges_);
    for (std::size_t i = 0; i < found.size(); ++i) {
      // A position that is read from a buffer is defined only where its reader's guard holds.
      if (!found[i].min.defined() || !holds_load(found[i].min)) continue;
      found[i] = {Expr(), mine.iters[i].extent};
    }
    return found;
  }
  std::optional<Decided> decided = witness_ == nullptr ? deciding_read() : as_witness();
  if (decided) return std::move(decided->ranges);
  std::vector<IterRange> whole;
  for (const IterVar& iter : mine.iters) whole.push_back({Expr(), iter.extent});
  return whole;
}

// One read decides for all variables, so that every instance finds its iteration; the others are
// checked afterwards.
std::optional<MovePlanner::Decided> MovePlanner::deciding_read() {
  const Block& mine = *block().block;
  std::optional<Decided> best;
  int64_t fewest = -1;
  BufferRegion box;
  for (std::size_t r = 0; r < mine.reads.size(); ++r) {
    const Access& access = mine.reads[r];
    if (!decides(access) || !box_under_loop(access.buffer, /*of_writes=*/true, &box)) continue;
    std::vector<IterRange> found = solve_iters(b(), mine, access, box, ranges_);
    int64_t whole = 0;
    for (const IterRange& range : found) whole += range.min.defined() ? 0 : 1;
    if (fewest < 0 || whole < fewest) {
      fewest = whole;
      best = {r, std::move(found)};
    }
  }
  return best;
}

// Which read decides is structure.
std::optional<MovePlanner::Decided> MovePlanner::as_witness() {
  MovePlanner there(*witness_, direction_);
  if (!there.find(block().block->id, plan_.loop).ok()) return std::nullopt;
  std::optional<Decided> decided = there.deciding_read();
  if (!decided) return std::nullopt;
  const Block& mine = *block().block;
  const Access& access = mine.reads[decided->read];
  BufferRegion box;
  box_under_loop(access.buffer, /*of_writes=*/true, &box);
  return Decided{decided->read, solve_iters(b(), mine, access, box, ranges_)};
}

// The block under its new loops.
void MovePlanner::build(const std::vector<IterRange>& iter_ranges) {
  Block copy = *block().block;
  std::vector<IterVar> iters(copy.iters.begin(), copy.iters.end());
  std::vector<const Var*> vars;
  Expr guard;
  for (std::size_t i = 0; i < iters.size(); ++i) {
    const Var* var = b().fresh_var("ax" + std::to_string(i));
    vars.push_back(var);
    plan_.new_loops.push_back(b().fresh_loop_id());
    ranges_.bind(var, iter_ranges[i].extent);
    iters[i].binding = iter_ranges[i].min.defined()
                           ? simplify(b(), b().add(iter_ranges[i].min, var), ranges_)
                           : Expr(var);
    const Expr bounds = bounds_guard(b(), iters[i], iter_ranges[i], ranges_);
    if (!bounds.defined()) continue;
    guard = guard.defined() ? b().logical_and(guard, bounds) : bounds;
  }
  copy.iters = iters;
  copy.guard = guard;
  plan_.nest = b().block(copy);
  moved_.block = plan_.nest.as<Block>();
  for (std::size_t i = iters.size(); i-- > 0;) {
    plan_.nest = make_loop(b(), vars[i], iter_ranges[i].extent, plan_.nest, plan_.new_loops[i]);
  }
  moved_.loops = outer_;
  Stmt s = plan_.nest;
  for (const Loop* loop = s.as<Loop>(); loop != nullptr; loop = loop->body.as<Loop>()) {
    moved_.loops.push_back(loop);
  }
}

bool MovePlanner::covered_by(const LeafBlock& writer, const Access& read, std::size_t shared) {
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

// Each source must be complete in the iteration of the loops shared with its writers.
Result<void> MovePlanner::check_covered() {
  for (const Access& read : moved_.block->reads) {
    bool shares = false;
    bool covered = false;
    for (const std::size_t place : flow_.writers(read.buffer)) {
      if (place == place_) continue;
      const LeafBlock& writer = flow_[place];
      const std::size_t shared = shared_loops(writer.loops, outer_);
      for (std::size_t i = 0; i < shared; ++i) {
        if (feeds_reduction(*outer_[i], *writer.block)) {
          return error(Diag::kReductionNotFinished, outer_[i]->id, writer.block->id);
        }
      }
      if (shared == 0) continue;
      shares = true;
      covered = covered || covered_by(writer, read, shared);
    }
    if (shares && !covered) {
      return error(Diag::kRegionNotCovered, moved_.block->id,
                   std::string(program_.buffer(read.buffer).name), plan_.loop);
    }
  }
  return {};
}

Result<MovePlan> MovePlanner::plan(BlockId block_id, LoopId loop_id) {
  PRUNERC_TRY_VOID(find(block_id, loop_id));
  PRUNERC_TRY_VOID(direction_ == Direction::kProducer ? check_producer() : check_consumer());
  PRUNERC_TRY_VOID(check_sole_writer(flow_, place_));
  PRUNERC_TRY_VOID(check_sources_final(b(), flow_, place_));
  PRUNERC_TRY_VOID(check_movable(b(), flow_, place_));
  find_neighbour();
  build(iter_ranges());
  PRUNERC_TRY_VOID(on_instance(program_, [&] { return check_covered(); }));
  return std::move(plan_);
}

Result<Applied> run_move(const Program& program, const Call& call, Direction direction) {
  const Program* witness = call.open == nullptr ? nullptr : call.open->witness;
  PRUNERC_TRY(const MovePlan plan,
              MovePlanner(program, direction, witness).plan(call.block(0), call.loop(1)));
  Applied moved = apply_move(plan);
  // Iterations of concurrent loops around must stay independent: a question about the result.
  PRUNERC_TRY_VOID(recheck_concurrent(moved.program, plan.concurrent));
  PRUNERC_TRY_VOID(recheck_left(moved.program, plan.block_site));
  return moved;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kComputeAt>(const Program& program, const Call& call) {
  return run_move(program, call, Direction::kProducer);
}

template <>
Result<Applied> run<PrimitiveKind::kReverseComputeAt>(const Program& program, const Call& call) {
  return run_move(program, call, Direction::kConsumer);
}

}  // namespace prunerc::schedule
