#include "schedule/legality/dataflow.h"

#include "ir/analysis/iter_map.h"
#include "ir/visit.h"
#include "schedule/legality/instance_order.h"

#include <algorithm>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

bool holds_block(Stmt s) {
  bool found = false;
  walk(
      s,
      [&](Stmt child) {
        found |= child.as<Block>() != nullptr;
        return !found;
      },
      [](Expr) {});
  return found;
}

bool touches(std::span<const Access> accesses, BufferId buffer) {
  return std::any_of(accesses.begin(), accesses.end(),
                     [&](const Access& access) { return access.buffer == buffer; });
}

// Each variable bound to a loop of its own with the same extent: the common case, without an
// analysis.
bool trivially_bound(const LeafBlock& leaf) {
  std::vector<VarId> used;
  for (const IterVar& iter : leaf.block->iters) {
    const Var* var = iter.binding.as<Var>();
    if (var == nullptr || std::find(used.begin(), used.end(), var->id) != used.end()) return false;
    used.push_back(var->id);
    const bool same = std::any_of(leaf.loops.begin(), leaf.loops.end(), [&](const Loop* loop) {
      return loop->var->id == var->id && constant(loop->extent) &&
             constant(loop->extent) == constant(iter.extent);
    });
    if (!same) return false;
  }
  return !leaf.block->guard.defined();
}

}  // namespace

bool covers_domain(IrBuilder& b, const Program& program, const LeafBlock& leaf) {
  if (trivially_bound(leaf)) return true;
  VarRanges ranges(program.domain());
  std::vector<const Var*> vars;
  for (const Loop* loop : leaf.loops) {
    ranges.bind(loop->var, loop->extent);
    vars.push_back(loop->var);
  }
  if (!guard_cuts_only_domain(b, *leaf.block, ranges)) return false;
  std::vector<Expr> bindings;
  for (const IterVar& iter : leaf.block->iters) bindings.push_back(iter.binding);
  // The guard limits to the domain; without it the map must reach at least as far.
  const IterMapResult found =
      detect_iter_map(b, bindings, vars, {}, ranges, IterMapLevel::kSurjective);
  if (!found.ok()) return false;
  for (std::size_t i = 0; i < bindings.size(); ++i) {
    const std::optional<int64_t> wanted = constant(leaf.block->iters[i].extent);
    const Linear& reached = found.map.extents[i];
    if (!wanted || !reached.is_constant() || reached.constant < *wanted) return false;
    if (!found.map.indices[i].base.is_constant(0)) return false;
    const std::vector<IterSplit>& splits = found.map.indices[i].splits;
    if (!splits.empty() && splits.back().scale.coef != 1) return false;
  }
  return true;
}

Result<std::size_t> Dataflow::find(BlockId id) const {
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (blocks_[i].block->id != id) continue;
    if (holds_block(blocks_[i].block->body)) return error(Diag::kBlockNested, id);
    PRUNERC_TRY(const Site site, find_block(program_, id));
    for (std::size_t k = 0; k + 1 < site.path.size(); ++k) {
      const StmtKind kind = site.path[k].kind();
      if (kind != StmtKind::kLoop && kind != StmtKind::kSeq) {
        return error(Diag::kBlockUnderIf, id);
      }
    }
    return i;
  }
  PRUNERC_TRY_VOID(find_block(program_, id));
  return error(Diag::kBlockNested, id);
}

std::vector<std::size_t> Dataflow::writers(BufferId buffer) const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (writes(*blocks_[i].block, buffer)) out.push_back(i);
  }
  return out;
}

std::vector<std::size_t> Dataflow::readers(BufferId buffer) const {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    if (reads(*blocks_[i].block, buffer)) out.push_back(i);
  }
  return out;
}

Dataflow::Span Dataflow::under(LoopId id) const {
  Span span;
  bool any = false;
  for (std::size_t i = 0; i < blocks_.size(); ++i) {
    for (const Loop* loop : blocks_[i].loops) {
      if (loop->id != id) continue;
      if (!any) span.first = i;
      any = true;
      span.last = i + 1;
    }
  }
  return span;
}

bool Dataflow::same_statement(std::size_t x, std::size_t y) const {
  return x == y || shared_loops(blocks_[x].loops, blocks_[y].loops) > 0;
}

std::string quoted_name(const Program& program, BufferId buffer) {
  return "'" + std::string(program.buffer(buffer).name) + "'";
}

bool reads(const Block& block, BufferId buffer) { return touches(block.reads, buffer); }
bool writes(const Block& block, BufferId buffer) { return touches(block.writes, buffer); }

std::size_t shared_loops(const std::vector<const Loop*>& x, const std::vector<const Loop*>& y) {
  std::size_t n = 0;
  while (n < x.size() && n < y.size() && x[n] == y[n]) ++n;
  return n;
}

bool feeds_reduction(const Loop& loop, const Block& block) {
  return std::any_of(block.iters.begin(), block.iters.end(), [&](const IterVar& iter) {
    return iter.kind != IterKind::kSpatial && mentions(iter.binding, loop.var->id);
  });
}

Result<void> check_sole_writer(const Dataflow& flow, std::size_t block) {
  const Block& mine = *flow[block].block;
  for (const Access& access : mine.writes) {
    for (const std::size_t writer : flow.writers(access.buffer)) {
      if (writer == block) continue;
      return error(Diag::kBufferManyWriters, std::string(flow.program().buffer(access.buffer).name),
                   mine.id, flow[writer].block->id);
    }
  }
  return {};
}

Result<void> check_sources_final(IrBuilder& b, const Dataflow& flow, std::size_t block) {
  if (is_parametric(flow.program())) return {};
  const LeafBlock& mine = flow[block];
  for (const Access& access : mine.block->reads) {
    for (const std::size_t writer : flow.writers(access.buffer)) {
      if (writer == block) continue;
      const LeafBlock& other = flow[writer];
      if (writer > block) {
        return error(Diag::kSourceOverwritten,
                     std::string(flow.program().buffer(access.buffer).name), mine.block->id,
                     other.block->id);
      }
      const std::size_t shared = shared_loops(mine.loops, other.loops);
      for (std::size_t i = 0; i < shared; ++i) {
        if (feeds_reduction(*mine.loops[i], *other.block)) {
          return error(Diag::kReductionNotFinished, mine.loops[i]->id, other.block->id);
        }
      }
      if (shared == 0) continue;
      const std::string fault = order_fault(b, *other.block);
      if (!fault.empty()) return error(Diag::kBlockOrderFixed, other.block->id, fault);
    }
  }
  return {};
}

Result<void> check_movable(IrBuilder& b, const Dataflow& flow, std::size_t block) {
  if (is_parametric(flow.program())) return {};
  const LeafBlock& mine = flow[block];
  const std::string fault = order_fault(b, *mine.block);
  if (!fault.empty()) return error(Diag::kBlockOrderFixed, mine.block->id, fault);
  if (!mine.block->init.defined()) {
    if (has_reduce_iters(*mine.block)) return error(Diag::kBlockNoInit, mine.block->id);
    for (const Access& access : mine.block->writes) {
      if (reads(*mine.block, access.buffer)) {
        return error(Diag::kBlockNotSimple, mine.block->id, std::string("not read what it writes"));
      }
    }
  }
  for (const IterVar& iter : mine.block->iters) {
    if (!constant(iter.extent)) {
      return error(Diag::kBlockNotSimple, mine.block->id, std::string("have constant extents"));
    }
  }
  if (!covers_domain(b, flow.program(), mine)) {
    return error(Diag::kBlockNotSimple, mine.block->id,
                 std::string("run over its whole iteration domain"));
  }
  return {};
}

}  // namespace prunerc::schedule
