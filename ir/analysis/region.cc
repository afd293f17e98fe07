// Collecting what a statement touches.
#include "ir/analysis/region.h"

#include "ir/arith/loop_index.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

class Collector {
 public:
  Collector(IrBuilder& b, const VarRanges& ranges, const RegionOptions& options)
      : b_(b), ranges_(ranges), outer_(ranges), options_(options) {}

  void visit(Stmt s) {
    if (!s.defined()) return;
    ir::visit(s, Overload{
                     [&](const Seq& n) {
                       for (Stmt child : n.stmts) visit(child);
                     },
                     [&](const Loop& n) { loop(n); },
                     [&](const Block& n) { block(n); },
                     [&](const Store& n) { store(n); },
                     [&](const If& n) { branch(n); },
                     [&](const Alloc& n) { visit(n.body); },
                 });
  }

  Regions take() {
    if (options_.clip) {
      for (auto* list : {&found_.reads, &found_.writes}) {
        for (BufferRegion& region : *list) region = clip_to_buffer(b_, region, outer_);
      }
    }
    return std::move(found_);
  }

 private:
  void loop(const Loop& n) {
    visit(n.extent);
    const VarRanges::Mark outside = ranges_.mark();
    ranges_.bind(n.var, n.extent);
    inner_.push_back(n.var->id);
    visit(n.body);
    inner_.pop_back();
    ranges_.rewind(outside);
  }

  void block(const Block& n) {
    const VarRanges::Mark outside = ranges_.mark();
    if (n.guard.defined()) {
      visit(n.guard);
      assume(n.guard, true);
    }
    for (const IterVar& iter : n.iters) visit(iter.binding);
    for (const Access& access : n.reads) add(bound_region(b_, n, access), found_.reads);
    for (const Access& access : n.writes) add(bound_region(b_, n, access), found_.writes);
    ranges_.rewind(outside);
  }

  void store(const Store& n) {
    for (Expr index : n.indices) visit(index);
    visit(n.value);
    add(point(n.buffer, n.indices), found_.writes);
  }

  void branch(const If& n) {
    visit(n.condition);
    const VarRanges::Mark outside = ranges_.mark();
    assume(n.condition, true);
    visit(n.then_body);
    ranges_.rewind(outside);
    assume(n.condition, false);
    visit(n.else_body);
    ranges_.rewind(outside);
  }

  void visit(Expr e) {
    if (const Load* load = e.as<Load>()) {
      for (Expr index : load->indices) visit(index);
      add(point(load->buffer, load->indices), found_.reads);
      return;
    }
    const BinaryNode* n = as_binary(e);
    const Select* select = e.as<Select>();
    const VarRanges::Mark outside = ranges_.mark();
    if (select != nullptr) {
      visit(select->condition);
      assume(select->condition, true);
      visit(select->on_true);
      ranges_.rewind(outside);
      assume(select->condition, false);
      visit(select->on_false);
      ranges_.rewind(outside);
    } else if (n != nullptr && (n->kind == ExprKind::kAnd || n->kind == ExprKind::kOr)) {
      visit(n->lhs);
      assume(n->lhs, n->kind == ExprKind::kAnd);
      visit(n->rhs);
      ranges_.rewind(outside);
    } else {
      for_each_child(e, [&](Expr child) { visit(child); });
    }
  }

  void assume(Expr condition, bool holds) {
    if (!options_.use_guards) return;
    if (holds) {
      ranges_.assume(condition);
    } else {
      ranges_.assume_not(condition);
    }
  }

  BufferRegion point(BufferId buffer, std::span<const Expr> indices) {
    BufferRegion out;
    out.buffer = buffer;
    for (Expr index : indices) out.box.push_back({index, b_.int_imm(1)});
    return out;
  }

  void add(const BufferRegion& exact, std::vector<BufferRegion>& list) {
    const BufferRegion relaxed = relax_region(b_, exact, inner_, ranges_);
    for (BufferRegion& other : list) {
      if (other.buffer != exact.buffer) continue;
      // What holds at one access need not hold at the other: the hull is taken under the outer
      // ranges.
      other = hull(b_, other, relaxed, outer_);
      return;
    }
    list.push_back(relaxed);
  }

  IrBuilder& b_;
  VarRanges ranges_;
  const VarRanges& outer_;
  const RegionOptions& options_;
  std::vector<VarId> inner_;  // outermost first
  Regions found_;
};

}  // namespace

Regions touched_regions(IrBuilder& b, Stmt s, const VarRanges& ranges,
                        const RegionOptions& options) {
  Collector collector(b, ranges, options);
  collector.visit(s);
  return collector.take();
}

Regions infer_block_accesses(IrBuilder& b, std::span<const IterVar> iters, Stmt init, Stmt body,
                             const VarRanges& outer) {
  VarRanges ranges = outer;
  for (const IterVar& iter : iters) ranges.bind(iter.var, iter.extent);
  const Stmt parts[] = {init, body};
  Regions found = touched_regions(b, b.seq(parts), ranges, {.use_guards = false, .clip = false});
  if (init.defined()) {
    // A reduction reads its accumulator only after its own init has written it; what other instances
    // have written it reads as any block does.
    const auto is_own = [&](const BufferRegion& read) {
      return std::any_of(found.writes.begin(), found.writes.end(), [&](const BufferRegion& write) {
        return write.buffer == read.buffer && covers(b, write, read, ranges) == Proof::kYes;
      });
    };
    found.reads.erase(std::remove_if(found.reads.begin(), found.reads.end(), is_own),
                      found.reads.end());
  }
  return found;
}

AccessLists make_accesses(IrBuilder& b, const Regions& regions) {
  const auto copy = [&](const std::vector<BufferRegion>& list) {
    std::vector<Access> out;
    for (const BufferRegion& region : list) out.push_back({region.buffer, b.copy(region.box)});
    return b.copy(out);
  };
  return {copy(regions.reads), copy(regions.writes)};
}

void rebuild_accesses(IrBuilder& b, Block& block, const VarRanges& outer) {
  const AccessLists lists =
      make_accesses(b, infer_block_accesses(b, block.iters, block.init, block.body, outer));
  block.reads = lists.reads;
  block.writes = lists.writes;
}

}  // namespace prunerc::ir
