#include "schedule/legality/access_region.h"

#include "ir/arith/iter_map.h"
#include "ir/arith/loop_index.h"
#include "ir/arith/simplify.h"
#include "ir/equal.h"
#include "ir/map.h"
#include "ir/visit.h"
#include "schedule/legality/instance_order.h"

#include <algorithm>
#include <vector>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

// Each index takes every value of an interval.
bool steps_of_one(const IterMapResult& found) {
  if (!found.ok()) return false;
  for (const IterSum& index : found.map.indices) {
    if (index.splits.empty()) continue;
    const Term& last = index.splits.back().scale;
    if (last.degree != 0 || last.coef != 1) return false;
  }
  return true;
}

// One iteration variable, scaled and shifted: different values give different subscripts.
bool is_of_one_variable(const Block& block, Expr subscript) {
  const auto count =
      std::count_if(block.iters.begin(), block.iters.end(),
                    [&](const IterVar& iter) { return mentions(subscript, iter.var->id); });
  bool wraps = false;
  walk(subscript, [&](Expr e) {
    wraps = wraps || e.kind() == ExprKind::kFloorDiv || e.kind() == ExprKind::kFloorMod;
    return !wraps;
  });
  return count == 1 && !wraps;
}

// A guard usually leaves out elements that nobody writes: those of iterations outside the domain.
// Not so in two cases. An iteration variable of which the access says nothing (its domain has one
// value, say) may be out of its domain, by the loops outside alone: then nothing is written,
// wherever the access points. And in a subscript such as v0*4 + v1 with v1 below 4, a v1 that the
// guard cuts off points at another tile's elements.
bool may_skip_silently(IrBuilder& b, const LeafBlock& leaf, const Access& access,
                       const VarRanges& ranges) {
  const auto is_inner = [&](VarId id) {
    return std::any_of(leaf.loops.begin(), leaf.loops.end(),
                       [&](const Loop* loop) { return loop->var->id == id; });
  };
  for (const IterVar& iter : leaf.block->iters) {
    bool is_seen = false;
    bool is_mixed = false;
    for (const Range& range : access.region) {
      if (!mentions(range.min, iter.var->id)) continue;
      is_seen = true;
      is_mixed = is_mixed || !is_of_one_variable(*leaf.block, range.min);
    }
    bool depends_on_outside = false;
    walk(iter.binding, [&](Expr e) {
      const Var* var = e.as<Var>();
      depends_on_outside |= var != nullptr && !is_inner(var->id);
      return true;
    });
    if (is_seen ? !is_mixed : !depends_on_outside) continue;
    const Interval reached = interval_of(to_linear(b, iter.binding, ranges), ranges);
    const std::optional<int64_t> extent = constant(iter.extent);
    if (!extent || reached.lo < 0 || reached.hi >= *extent) return true;
  }
  return false;
}

}  // namespace

BufferRegion access_box(IrBuilder& b, const LeafBlock& leaf, const Access& access,
                        VarRanges& ranges) {
  const BufferRegion bound = bound_region(b, *leaf.block, access);
  if (leaf.loops.empty()) return bound;
  const VarRanges::Mark mark = ranges.mark();
  std::vector<VarId> inner;
  for (const Loop* loop : leaf.loops) {
    ranges.bind(loop->var, loop->extent);
    inner.push_back(loop->var->id);
  }
  const BufferRegion out = relax_region(b, bound, inner, ranges);
  ranges.rewind(mark);
  return out;
}

bool is_point(const Access& access) {
  for (const Range& range : access.region) {
    if (constant(range.extent) != 1) return false;
  }
  return true;
}

bool same_region(const Access& x, const Access& y) {
  if (x.buffer != y.buffer || x.region.size() != y.region.size()) return false;
  for (std::size_t d = 0; d < x.region.size(); ++d) {
    if (!structural_equal(x.region[d].min, y.region[d].min) ||
        !structural_equal(x.region[d].extent, y.region[d].extent)) {
      return false;
    }
  }
  return true;
}

BufferRegion domain_box(IrBuilder& b, const Block& block, const Access& access) {
  VarRanges ranges;
  std::vector<VarId> vars;
  for (const IterVar& iter : block.iters) {
    ranges.bind(iter.var, iter.extent);
    vars.push_back(iter.var->id);
  }
  const BufferRegion region{access.buffer, {access.region.begin(), access.region.end()}};
  return relax_region(b, region, vars, ranges);
}

namespace {

// Which elements an instance writes: one, or those of a tile as loops inside the block run.
struct Written {
  std::vector<Expr> indices;  // over the block's variables and those of the loops
  std::vector<const Loop*> loops;
};

bool has_branch(Stmt s) {
  bool found = false;
  walk(
      s,
      [&](Stmt part) {
        found = found || part.as<If>() != nullptr;
        return !found;
      },
      [](Expr) {});
  return found;
}

// Of several statements the one that stores to the buffer; null if there are more of them.
Stmt storing_statement(Stmt body, BufferId buffer) {
  const Seq* seq = body.as<Seq>();
  if (seq == nullptr) return body;
  Stmt out;
  for (Stmt part : seq->stmts) {
    bool stores = false;
    walk(
        part,
        [&](Stmt s) {
          const Store* store = s.as<Store>();
          stores = stores || (store != nullptr && store->buffer == buffer);
          return !stores;
        },
        [](Expr) {});
    if (stores && out.defined()) return {};
    if (stores) out = part;
  }
  return out;
}

// Nullopt if the access is neither one element nor the only store to it in a nest of loops, if it declares
// more than the hull of what the loops store, or if a branch may skip it and no init has made it.
std::optional<Written> written_elements(IrBuilder& b, const Block& block, const Access& access) {
  Written out;
  if (!block.init.defined() && has_branch(block.body)) return std::nullopt;
  if (is_point(access)) {
    for (const Range& range : access.region) out.indices.push_back(range.min);
    return out;
  }
  Stmt s = storing_statement(block.body, access.buffer);
  if (!s.defined()) return std::nullopt;
  while (const Loop* loop = s.as<Loop>()) {
    if (!constant(loop->extent)) return std::nullopt;
    out.loops.push_back(loop);
    s = loop->body;
  }
  const Store* store = s.as<Store>();
  if (store == nullptr || store->buffer != access.buffer) return std::nullopt;
  out.indices.assign(store->indices.begin(), store->indices.end());
  VarRanges ranges = ranges_of(block);
  std::vector<VarId> inner;
  BufferRegion stored{access.buffer, {}};
  for (Expr index : out.indices) stored.box.push_back({index, b.int_imm(1)});
  for (const Loop* loop : out.loops) {
    ranges.bind(loop->var, loop->extent);
    inner.push_back(loop->var->id);
  }
  stored = relax_region(b, stored, inner, ranges);
  for (std::size_t d = 0; d < stored.box.size(); ++d) {
    const Range& declared = access.region[d];
    const bool same_min =
        structural_equal(simplify(b, stored.box[d].min, ranges), simplify(b, declared.min, ranges));
    const bool same_extent = structural_equal(simplify(b, stored.box[d].extent, ranges),
                                              simplify(b, declared.extent, ranges));
    if (!same_min || !same_extent) return std::nullopt;
  }
  return out;
}

}  // namespace

bool writes_whole_domain_box(IrBuilder& b, const Block& block, const Access& access) {
  const std::optional<Written> written = written_elements(b, block, access);
  if (!written) return false;
  VarRanges ranges;
  std::vector<const Var*> vars;
  for (const IterVar& iter : block.iters) {
    ranges.bind(iter.var, iter.extent);
    vars.push_back(iter.var);
  }
  for (const Loop* loop : written->loops) {
    ranges.bind(loop->var, loop->extent);
    vars.push_back(loop->var);
  }
  return steps_of_one(
      detect_iter_map(b, written->indices, vars, {}, ranges, IterMapLevel::kSurjective));
}

namespace {

// Subscripts in terms of loop variables.
std::vector<Expr> bound_indices(IrBuilder& b, const Block& block, const Written& written,
                                const VarRanges& ranges) {
  VarMap bindings;
  for (const IterVar& iter : block.iters) bindings[iter.var->id] = iter.binding;
  std::vector<Expr> out;
  for (Expr index : written.indices) {
    out.push_back(simplify(b, substitute(b, index, bindings), ranges));
  }
  return out;
}

}  // namespace

bool writes_whole_box(IrBuilder& b, const LeafBlock& leaf, const Access& access,
                      VarRanges& ranges) {
  const std::optional<Written> written = written_elements(b, *leaf.block, access);
  if (!written) return false;
  const VarRanges::Mark mark = ranges.mark();
  std::vector<const Var*> vars;
  for (const Loop* loop : leaf.loops) {
    ranges.bind(loop->var, loop->extent);
    vars.push_back(loop->var);
  }
  // A guard that cuts off only what is outside the iteration domain leaves out elements that nobody
  // ever writes.
  bool whole = guard_cuts_only_domain(b, *leaf.block, ranges) &&
               (!leaf.block->guard.defined() || !may_skip_silently(b, leaf, access, ranges));
  for (const Loop* loop : written->loops) {
    ranges.bind(loop->var, loop->extent);
    vars.push_back(loop->var);
  }
  const std::vector<Expr> indices = bound_indices(b, *leaf.block, *written, ranges);
  const IterMapResult found =
      detect_iter_map(b, indices, vars, {}, ranges, IterMapLevel::kSurjective);
  whole = whole && steps_of_one(found);
  ranges.rewind(mark);
  return whole;
}

std::optional<BufferRegion> guarded_box(IrBuilder& b, const LeafBlock& leaf, const Access& access,
                                        VarRanges& ranges) {
  if (!leaf.block->guard.defined()) return std::nullopt;
  const std::optional<Written> written = written_elements(b, *leaf.block, access);
  if (!written) return std::nullopt;
  const VarRanges::Mark mark = ranges.mark();
  std::vector<const Var*> vars;
  for (const auto* loops : {&leaf.loops, &written->loops}) {
    for (const Loop* loop : *loops) {
      ranges.bind(loop->var, loop->extent);
      vars.push_back(loop->var);
    }
  }
  // The tail of a split cuts the box; the edge of the buffer leaves out only what nobody writes.
  const Expr guard = may_skip_silently(b, leaf, access, ranges)
                         ? leaf.block->guard
                         : guard_within_domain(b, *leaf.block, ranges);
  const std::vector<Expr> indices = bound_indices(b, *leaf.block, *written, ranges);
  const IterMapResult found =
      detect_iter_map(b, indices, vars, guard, ranges, IterMapLevel::kSurjective);
  ranges.rewind(mark);
  if (!steps_of_one(found)) return std::nullopt;
  BufferRegion out{access.buffer, {}};
  for (std::size_t d = 0; d < indices.size(); ++d) {
    out.box.push_back({to_expr(b, found.map.indices[d].base), to_expr(b, found.map.extents[d])});
  }
  return out;
}

}  // namespace prunerc::schedule
