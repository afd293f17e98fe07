// Rule "inline": an elementwise stage whose value is cheap, or has one reader that asks once, is
// computed where it is read.
#include "ir/visit.h"
#include "search/space/sketch_rule/rule.h"

namespace prunerc::search {
namespace {

/// Operations that a reader may repeat for free next to the load that the inlining saves.
constexpr int kCheapOps = 6;

struct Cost {
  int ops = 0;
  bool expensive = false;  // a function or a division
  bool guarded = false;    // a select: padding, for instance
};

Cost cost_of(const ir::Block& block) {
  Cost cost;
  ir::walk(
      block.body, [](ir::Stmt) { return true; },
      [&](ir::Expr top) {
        ir::walk(top, [&](ir::Expr e) {
          if (e.as<ir::Call>() != nullptr || e.as<ir::Div>() != nullptr) cost.expensive = true;
          if (e.as<ir::Select>() != nullptr) cost.guarded = true;
          if (ir::as_binary(e) != nullptr && !ir::is_int(e.dtype())) ++cost.ops;
          return e.as<ir::Load>() == nullptr;
        });
      });
  return cost;
}

// Does the reader use each element of what this block writes more than once?
bool reads_repeatedly(const ir::Block& reader, ir::BufferId buffer) {
  for (const ir::Access& access : reader.reads) {
    if (access.buffer != buffer) continue;
    for (const ir::IterVar& iter : reader.iters) {
      const auto* extent = iter.extent.as<ir::IntImm>();
      const bool single = extent != nullptr && extent->value == 1;
      if (!single && !mentions(access, iter.var->id)) return true;
    }
  }
  return false;
}

bool wants_inlining(const SketchContext& context, const ir::Block& block,
                    const std::vector<ir::BlockId>& readers) {
  const Cost cost = cost_of(block);
  bool repeated = readers.size() > 1;
  for (const ir::BlockId id : readers) {
    const ir::Block* reader = find_block(context.program(), id);
    if (reader == nullptr) return false;
    repeated = repeated || reads_repeatedly(*reader, block.writes[0].buffer);
    // A window with padding would test its bounds for every tap.
    if (cost.guarded && is_reduction(*reader)) return false;
  }
  if (cost.expensive) return !repeated;
  return !repeated || cost.ops <= kCheapOps;
}

}  // namespace

void inline_stages(SketchContext& context, const Variant& variant) {
  if (!variant.inline_stages) return;
  for (const ir::BlockId id : context.schedule.blocks()) {
    const ir::Block* block = find_block(context.program(), id);
    if (context.keeps(id) || block == nullptr || is_reduction(*block) || block->init.defined())
      continue;
    if (block->writes.size() != 1) continue;
    const std::vector<ir::BlockId> readers = context.schedule.consumers(id);
    if (readers.empty() || !wants_inlining(context, *block, readers)) continue;
    // Whether it is legal is for the primitive to say; a stage that stays is scheduled like any
    // other.
    static_cast<void>(context.schedule.compute_inline(id).ok());
  }
}

}  // namespace prunerc::search
