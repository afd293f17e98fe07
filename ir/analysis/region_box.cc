// Operations on boxes: relaxing variables, hulls, clipping, containment, allocation extents.
#include "ir/analysis/region.h"
#include "ir/arith/linear.h"
#include "ir/arith/simplify.h"
#include "ir/map.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <algorithm>

namespace prunerc::ir {
namespace {

/// An end of so many pieces is replaced by a number: each further piece doubles the work on it.
constexpr int64_t kMaxEndNodes = 64;

Range whole_dimension(IrBuilder& b, BufferId buffer, std::size_t dim) {
  return {b.int_imm(0), b.buffer(buffer).shape[dim]};
}

Linear last_of(IrBuilder& b, const Range& range, const Linear& first, const VarRanges& ranges) {
  if (const IntImm* c = range.extent.as<IntImm>()) return first + (c->value - 1);
  return first + to_linear(b, range.extent, ranges) + -1;
}

// The smaller (larger) of two ends; an explicit min (max) if the order depends on the variables.
Linear outer_end(IrBuilder& b, const Linear& x, const Linear& y, Bound bound,
                 const VarRanges& ranges) {
  const Interval difference = interval_of(x - y, ranges);
  const bool lower = bound == Bound::kLower;
  if (difference.hi <= 0) return lower ? x : y;
  if (difference.lo >= 0) return lower ? y : x;
  const Expr ex = to_expr(b, x);
  const Expr ey = to_expr(b, y);
  if (expr_size(ex) + expr_size(ey) > kMaxEndNodes) {
    const Interval p = interval_of(x, ranges), q = interval_of(y, ranges);
    const int64_t end = lower ? std::min(p.lo, q.lo) : std::max(p.hi, q.hi);
    if (end != (lower ? Interval::kNoLower : Interval::kNoUpper)) return Linear::of(end);
  }
  return to_linear(b, lower ? b.min(ex, ey) : b.max(ex, ey), ranges);
}

Range range_between(IrBuilder& b, const Linear& first, const Linear& last) {
  return {to_expr(b, first), to_expr(b, last - first + 1)};
}

std::vector<VarId> vars_of(Expr e) {
  std::vector<VarId> out;
  walk(e, [&](Expr x) {
    if (const Var* v = x.as<Var>()) out.push_back(v->id);
    return true;
  });
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

Proof either(Proof a, Proof b) {
  if (a == Proof::kYes || b == Proof::kYes) return Proof::kYes;
  return a == Proof::kNo && b == Proof::kNo ? Proof::kNo : Proof::kUnknown;
}

}  // namespace

BufferRegion bound_region(IrBuilder& b, const Block& block, const Access& access) {
  VarMap map;
  for (const IterVar& iter : block.iters) map.emplace(iter.var->id, iter.binding);
  BufferRegion out;
  out.buffer = access.buffer;
  for (const Range& range : access.region) {
    out.box.push_back({substitute(b, range.min, map), substitute(b, range.extent, map)});
  }
  return out;
}

BufferRegion relax_region(IrBuilder& b, const BufferRegion& region, std::span<const VarId> inner,
                          const VarRanges& ranges) {
  BufferRegion out;
  out.buffer = region.buffer;
  for (std::size_t i = 0; i < region.box.size(); ++i) {
    const Range& range = region.box[i];
    if (has_load(range.min) || has_load(range.extent)) {
      out.box.push_back(whole_dimension(b, region.buffer, i));
      continue;
    }
    if (!mentions(range.min, inner) && !mentions(range.extent, inner)) {
      out.box.push_back({simplify(b, range.min, ranges), simplify(b, range.extent, ranges)});
      continue;
    }
    const Linear first = to_linear(b, range.min, ranges);
    const Linear last = last_of(b, range, first, ranges);
    const std::optional<Linear> lo = eliminate_vars(b, first, Bound::kLower, ranges, inner);
    const std::optional<Linear> hi = eliminate_vars(b, last, Bound::kUpper, ranges, inner);
    out.box.push_back(lo.has_value() && hi.has_value() ? range_between(b, *lo, *hi)
                                                       : whole_dimension(b, region.buffer, i));
  }
  return out;
}

BufferRegion hull(IrBuilder& b, const BufferRegion& x, const BufferRegion& y,
                  const VarRanges& ranges) {
  PRUNERC_CHECK(x.buffer == y.buffer && x.box.size() == y.box.size(), "a hull is of one buffer");
  BufferRegion out;
  out.buffer = x.buffer;
  for (std::size_t i = 0; i < x.box.size(); ++i) {
    const Range& p = x.box[i];
    const Range& q = y.box[i];
    if (structural_equal(p.min, q.min) && structural_equal(p.extent, q.extent)) {
      out.box.push_back(p);
      continue;
    }
    const Linear p_first = to_linear(b, p.min, ranges);
    const Linear q_first = to_linear(b, q.min, ranges);
    const Linear first = outer_end(b, p_first, q_first, Bound::kLower, ranges);
    const Linear last = outer_end(b, last_of(b, p, p_first, ranges), last_of(b, q, q_first, ranges),
                                  Bound::kUpper, ranges);
    out.box.push_back(range_between(b, first, last));
  }
  return out;
}

BufferRegion clip_to_buffer(IrBuilder& b, const BufferRegion& region, const VarRanges& ranges) {
  BufferRegion out;
  out.buffer = region.buffer;
  for (std::size_t i = 0; i < region.box.size(); ++i) {
    const Range& range = region.box[i];
    const Expr min = simplify(b, b.max(range.min, b.int_imm(0)), ranges);
    const Expr end = b.min(b.add(range.min, range.extent), b.buffer(region.buffer).shape[i]);
    out.box.push_back({min, simplify(b, b.sub(end, min), ranges)});
  }
  return out;
}

Proof covers(IrBuilder& b, const BufferRegion& outer, const BufferRegion& inner,
             const VarRanges& ranges) {
  if (outer.buffer != inner.buffer || outer.box.size() != inner.box.size()) return Proof::kNo;
  Proof all = Proof::kYes;
  for (std::size_t i = 0; i < outer.box.size() && all != Proof::kNo; ++i) {
    const Range& x = outer.box[i];
    const Range& y = inner.box[i];
    if (structural_equal(x.min, y.min) && structural_equal(x.extent, y.extent)) continue;
    all = all && prove(b.le(x.min, y.min), ranges);
    if (all == Proof::kNo) break;
    all = all && prove(b.le(b.add(y.min, y.extent), b.add(x.min, x.extent)), ranges);
  }
  return all;
}

Proof disjoint(IrBuilder& b, const BufferRegion& x, const BufferRegion& y,
               const VarRanges& ranges) {
  if (x.buffer != y.buffer) return Proof::kYes;
  Proof any = Proof::kNo;
  for (std::size_t i = 0; i < x.box.size() && any != Proof::kYes; ++i) {
    const Range& p = x.box[i];
    const Range& q = y.box[i];
    // Without enumeration: a point where one side fails says nothing of the other side or dimension
    // there.
    const ProveOptions quick = {.max_points = 0};
    const Expr before = b.le(b.add(p.min, p.extent), q.min);
    const Expr after = b.le(b.add(q.min, q.extent), p.min);
    any = either(any, either(prove(before, ranges, quick), prove(after, ranges, quick)));
    if (any == Proof::kYes) break;
    if (prove(b.logical_or(before, after), ranges) == Proof::kYes) any = Proof::kYes;
  }
  return any;
}

std::vector<std::optional<Expr>> region_extents(IrBuilder& b, const BufferRegion& region,
                                                const VarRanges& ranges) {
  std::vector<std::optional<Expr>> out;
  for (std::size_t i = 0; i < region.box.size(); ++i) {
    const Linear extent = to_linear(b, region.box[i].extent, ranges);
    const std::vector<VarId> vars = vars_of(to_expr(b, extent));
    const std::optional<Linear> largest = eliminate_vars(b, extent, Bound::kUpper, ranges, vars);
    std::optional<Expr> bound;
    const bool usable = largest.has_value() && !largest->has_data;
    if (usable && vars_of(to_expr(b, *largest)).empty()) bound = to_expr(b, *largest);
    const Interval numeric = interval_of(extent, ranges);
    const IntImm* constant = bound.has_value() ? bound->as<IntImm>() : nullptr;
    const bool tighter = constant == nullptr ? !bound.has_value() : numeric.hi < constant->value;
    if (tighter && numeric.hi != Interval::kNoUpper) bound = b.int_imm(numeric.hi);
    const IntImm* size = b.buffer(region.buffer).shape[i].as<IntImm>();
    const IntImm* found = bound.has_value() ? bound->as<IntImm>() : nullptr;
    if (size != nullptr &&
        (!bound.has_value() || (found != nullptr && found->value > size->value))) {
      bound = b.buffer(region.buffer).shape[i];
    }
    out.push_back(bound);
  }
  return out;
}

}  // namespace prunerc::ir
