#include "schedule/rewrite/move.h"

#include <algorithm>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

Applied apply_move(const MovePlan& plan) {
  IrBuilder& b = *plan.builder;
  // The loop does not enclose the block, so taking the block out leaves the loop's own nodes as
  // they are.
  const Stmt without = replace_at(b, plan.block_site, {});
  const Site site = find_loop_in(without, plan.loop);
  const Loop& loop = *site.loop();
  const Stmt beside = plan.direction == Direction::kProducer ? b.seq({plan.nest, plan.neighbour})
                                                             : b.seq({plan.neighbour, plan.nest});
  Loop copy = loop;
  const Seq* seq = loop.body.as<Seq>();
  if (seq == nullptr) {
    copy.body = beside;
  } else {
    std::vector<Stmt> children(seq->stmts.begin(), seq->stmts.end());
    *std::find_if(children.begin(), children.end(),
                  [&](Stmt child) { return child.is(plan.neighbour); }) = beside;
    copy.body = b.seq(children);
  }
  Applied out;
  out.program = b.finish(replace_at(b, site, b.loop(copy)));
  out.outputs.assign(plan.new_loops.begin(), plan.new_loops.end());
  return out;
}

}  // namespace prunerc::schedule
