#include "schedule/legality/dataflow.h"

#include "ir/analysis/region.h"
#include "ir/arith/iter_map.h"
#include "ir/visit.h"
#include "schedule/legality/access_region.h"
#include "schedule/legality/instance_order.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

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

Touch touch_of(IrBuilder& b, const LeafBlock& leaf, const Access& access,
               std::span<const Loop* const> chain, std::span<const Loop* const> inner) {
  Touch out{{}, {}, {}, bound_region(b, *leaf.block, access)};
  for (const Loop* loop : chain) out.chain.push_back({loop->var, loop->extent});
  for (const Loop* loop : inner) out.inner.push_back({loop->var, loop->extent});
  if (leaf.block->guard.defined()) out.conditions.push_back(leaf.block->guard);
  return out;
}

namespace {

// May the blocks write one element in two different iterations of their first `num_chain` loops,
// or, without loops, at all?
bool may_meet(IrBuilder& b, const LeafBlock& x, const LeafBlock& y, BufferId buffer,
              std::size_t num_chain) {
  VarRanges ranges;
  const auto touch = [&](const LeafBlock& leaf, const Access& access) {
    const std::span<const Loop* const> loops = leaf.loops;
    return touch_of(b, leaf, access, loops.first(num_chain), loops.subspan(num_chain));
  };
  for (const Access& of_x : x.block->writes) {
    for (const Access& of_y : y.block->writes) {
      if (of_x.buffer != buffer || of_y.buffer != buffer) continue;
      const bool apart = num_chain > 0
                             ? share_element(touch(x, of_x), touch(y, of_y), PointOrder::kDifferent,
                                             ranges, kTouchEffort) == Proof::kNo
                             : disjoint(b, access_box(b, x, of_x, ranges),
                                        access_box(b, y, of_y, ranges), ranges) == Proof::kYes;
      if (!apart) return true;
    }
  }
  return false;
}

// Do iterations of loops write the same where they write one element? Each writer must be a function
// of its elements, or write each in one iteration alone.
class Finality {
 public:
  Finality(IrBuilder& b, const Dataflow& flow, Covered covered)
      : b_(b), flow_(flow), covered_(covered) {}

  // Of what `reader`, below `loops`, reads of the buffer.
  Result<void> check(BufferId buffer, std::size_t reader, const std::vector<const Loop*>& loops) {
    const std::vector<std::size_t> writers = flow_.writers(buffer);
    for (const std::size_t writer : writers) {
      const LeafBlock& from = flow_[writer];
      const std::size_t shared = shared_loops(loops, from.loops);
      if (writer == reader || shared == 0) continue;
      if (writer > reader) return overwritten(buffer, reader, writer);
      for (std::size_t i = 0; i < shared; ++i) {
        if (!feeds_reduction(*loops[i], *from.block)) continue;
        return error(Diag::kReductionNotFinished, loops[i]->id, from.block->id);
      }
      const Result<void> repeats = check_repeats(reader, writer, shared);
      if (!repeats.ok() && may_meet(b_, from, from, buffer, shared)) return repeats.error();
      for (const std::size_t other : writers) {
        if (other == writer || other == reader) continue;
        const std::size_t of_other = shared_loops(loops, flow_[other].loops);
        // Done before the iteration, in which the deeper writer makes what is read.
        if (covered_ == Covered::kByDeepest && other < writer && of_other < shared) continue;
        if (!may_meet(b_, from, flow_[other], buffer, of_other == shared ? shared : 0)) continue;
        return overwritten(buffer, reader, std::max(writer, other));
      }
    }
    return {};
  }

 private:
  Error overwritten(BufferId buffer, std::size_t reader, std::size_t writer) const {
    return error(Diag::kSourceOverwritten, std::string(flow_.program().buffer(buffer).name),
                 flow_[reader].block->id, flow_[writer].block->id);
  }

  // Does the writer do the same in every iteration of its first `num_loops` loops? Asked once.
  Result<void> check_repeats(std::size_t reader, std::size_t writer, std::size_t num_loops) {
    const std::pair key(writer, num_loops);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
    return known_.emplace(key, find_repeats(reader, writer, num_loops)).first->second;
  }

  Result<void> find_repeats(std::size_t reader, std::size_t writer, std::size_t num_loops) {
    const LeafBlock& from = flow_[writer];
    const std::string fault = order_fault(b_, flow_.program(), *from.block);
    if (!fault.empty()) return error(Diag::kBlockOrderFixed, from.block->id, fault);
    for (const Access& write : from.block->writes) {
      if (from.block->init.defined() || !reads(*from.block, write.buffer)) continue;
      return overwritten(write.buffer, reader, writer);
    }
    const std::vector<const Loop*> loops(
        from.loops.begin(), from.loops.begin() + static_cast<std::ptrdiff_t>(num_loops));
    for (const Access& read : from.block->reads) {
      PRUNERC_TRY_VOID(check(read.buffer, writer, loops));
    }
    return {};
  }

  IrBuilder& b_;
  const Dataflow& flow_;
  const Covered covered_;
  std::map<std::pair<std::size_t, std::size_t>, Result<void>> known_;
};

}  // namespace

Result<void> check_final_below(IrBuilder& b, const Dataflow& flow, std::size_t reader,
                               const std::vector<const Loop*>& loops, Covered covered) {
  Finality finality(b, flow, covered);
  std::set<BufferId> seen;
  for (const Access& read : flow[reader].block->reads) {
    if (!seen.insert(read.buffer).second) continue;
    PRUNERC_TRY_VOID(finality.check(read.buffer, reader, loops));
  }
  return {};
}

Result<void> check_sources_final(IrBuilder& b, const Dataflow& flow, std::size_t block) {
  if (is_parametric(flow.program())) return {};
  const LeafBlock& mine = flow[block];
  for (const Access& access : mine.block->reads) {
    for (const std::size_t writer : flow.writers(access.buffer)) {
      if (writer <= block) continue;
      return error(Diag::kSourceOverwritten, std::string(flow.program().buffer(access.buffer).name),
                   mine.block->id, flow[writer].block->id);
    }
  }
  return check_final_below(b, flow, block, mine.loops, Covered::kNotAsked);
}

Result<void> check_movable(IrBuilder& b, const Dataflow& flow, std::size_t block) {
  if (is_parametric(flow.program())) return {};
  const LeafBlock& mine = flow[block];
  const std::string fault = order_fault(b, flow.program(), *mine.block);
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
