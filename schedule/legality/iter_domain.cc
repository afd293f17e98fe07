#include "schedule/legality/iter_domain.h"

#include "ir/arith/linear.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"
#include "ir/tile_space.h"
#include "ir/visit.h"
#include "schedule/legality/preimage.h"

#include <algorithm>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

// Tile parameters take too many values to be tried.
constexpr ProveOptions kQuick = {.max_points = 0};

bool may_narrow(Expr now, Expr extent) {
  const std::optional<int64_t> from = constant(now);
  const std::optional<int64_t> to = constant(extent);
  return from && to ? *to < *from : is_closed(extent);
}

// An upper bound of a polynomial over tile parameters. Beyond what intervals say: all levels of a
// covering tiling multiply to at most the extent and its waste, and d*(x // d) <= x.
std::optional<int64_t> upper_bound(IrBuilder& b, const Term& term, const VarRanges& ranges) {
  for (const TileVector& tiles : ranges.domain()->tiles) {
    Expr all = b.int_imm(1);
    for (const ParamId id : tiles.params) all = times(b, all, b.param(id));
    const Linear product = to_linear(b, all, ranges);
    Term unit;
    const bool is_whole = tiles.kind == TileKind::kCovering && product.terms.size() == 1 &&
                          divide_terms(term, product.terms[0], &unit) && unit.degree == 0;
    if (is_whole) return unit.coef * (tiles.extent + tiles.extent / TileSpace::kMaxWaste);
  }
  for (Expr atom : term.factors()) {
    const BinaryNode* n = as_binary(atom);
    if (n == nullptr || n->kind != ExprKind::kFloorDiv) continue;
    const Interval dividend = interval_of(n->lhs, ranges);
    const Linear divided = to_linear(b, b.mul(n->rhs, atom), ranges);
    Term unit;
    const bool is_digit = dividend.is_bounded() && divided.terms.size() == 1 &&
                          divide_terms(term, divided.terms[0], &unit) && unit.degree == 0;
    if (is_digit) return unit.coef * dividend.hi;
  }
  const Interval plain = interval_of(Linear::of(term), ranges);
  return plain.is_bounded() ? std::optional(plain.hi) : std::nullopt;
}

bool stays_below(IrBuilder& b, const Linear& form, int64_t limit, const VarRanges& ranges) {
  int64_t sum = form.constant;
  for (const Term& term : form.terms) {
    const std::optional<int64_t> bound = upper_bound(b, term, ranges);
    if (!bound || __builtin_add_overflow(sum, *bound, &sum)) return false;
  }
  return sum < limit;
}

// Tiles [min, min + extent) that stand at least their extent apart: where one of them is as large
// as [0, domain) there is no second one, and it begins at 0. For if a variable of min were not 0,
// then domain <= extent <= min; so it is enough that min < domain, or that min + extent < 2*domain.
bool begins_at_start(IrBuilder& b, Expr min, Expr extent, int64_t domain, const VarRanges& ranges) {
  if (ranges.domain() == nullptr) return false;
  const Linear first = to_linear(b, min, ranges);
  const Linear width = to_linear(b, extent, ranges);
  if (first.constant != 0 || first.overflow || first.has_data) return false;
  std::vector<VarId> vars;
  for (const Term& term : first.terms) {
    Term stride = term;
    stride.degree = 0;
    int num_vars = 0;
    for (Expr atom : term.factors()) {
      const Var* var = atom.as<Var>();
      if (var == nullptr && !is_closed(atom)) return false;
      if (var == nullptr) stride.atoms[static_cast<std::size_t>(stride.degree++)] = atom;
      if (var != nullptr) vars.push_back(var->id), ++num_vars;
    }
    if (num_vars != 1 || interval_of(Linear::of(stride) - width, ranges).lo < 0) return false;
  }
  const std::optional<Linear> last = eliminate_vars(b, first, Bound::kUpper, ranges, vars);
  return last && (stays_below(b, *last, domain, ranges) ||
                  stays_below(b, *last + width, 2 * domain, ranges));
}

// Is 0 <= e for all variables and parameters?
bool never_negative(IrBuilder& b, Expr e, const VarRanges& ranges) {
  if (prove(b.le(b.int_imm(0), e), ranges, kQuick) == Proof::kYes) return true;
  const Linear form = to_linear(b, e, ranges);
  std::vector<VarId> vars;
  walk(e, [&](Expr part) {
    if (const Var* var = part.as<Var>()) vars.push_back(var->id);
    return true;
  });
  const std::optional<Linear> least = eliminate_vars(b, form, Bound::kLower, ranges, vars);
  return least && interval_of(*least, ranges).lo >= 0;
}

// The interval of one dimension of the box, unless it is no smaller than what `now` says.
std::optional<IterRange> narrowed(IrBuilder& b, const IterRange& now, Expr min, Expr extent,
                                  const VarRanges& ranges) {
  Expr is_less = b.lt(extent, now.extent);
  if (!constant(is_less)) is_less = simplify(b, is_less, ranges);
  if (constant(is_less) == 0) return std::nullopt;
  min = simplify(b, min, ranges);
  if (constant(is_less) == 1) return IterRange{min, extent};
  // If it never leaves the domain, then it begins at 0 where it is as large as that.
  const Expr start = now.min.defined() ? now.min : b.int_imm(0);
  const Expr room = b.sub(b.add(start, now.extent), b.add(min, extent));
  const bool stays =
      never_negative(b, b.sub(min, start), ranges) && never_negative(b, room, ranges);
  if (stays) return IterRange{min, extent};
  const std::optional<int64_t> domain = constant(now.extent);
  if (domain && !now.min.defined() && begins_at_start(b, min, extent, *domain, ranges)) {
    return IterRange{min, simplify(b, b.min(extent, now.extent), ranges)};
  }
  return IterRange{b.select(is_less, min, start), simplify(b, b.min(extent, now.extent), ranges)};
}

// min + [0, extent) may leave [0, domain): by constants, by the interval of min alone.
struct Leaves {
  bool below = false;
  bool above = false;
};
Leaves leaves_domain(IrBuilder& b, const IterVar& iter, const IterRange& range,
                     const VarRanges& ranges) {
  const std::optional<int64_t> domain = constant(iter.extent);
  const std::optional<int64_t> extent = constant(range.extent);
  const Interval min = interval_of(to_linear(b, range.min, ranges), ranges);
  if (domain && extent) return {min.lo<0, min.hi> * domain - *extent};
  const Expr room = b.sub(iter.extent, b.add(range.min, range.extent));
  return {min.lo < 0 && !never_negative(b, range.min, ranges), !never_negative(b, room, ranges)};
}

bool is_open(const IterVar& iter, const IterRange& range) {
  return iter.kind == IterKind::kSpatial && !range.min.defined() && !is_one(iter.extent);
}

void narrow_by_map(IrBuilder& b, IterRange& range, const VarRun& run, const VarRanges& ranges) {
  if (!run.first.defined() || !may_narrow(range.extent, run.count)) return;
  std::optional<IterRange> found = narrowed(b, range, run.first, run.count, ranges);
  if (!found) return;
  range = *found;
  range.by_map = true;
}

// Is the variable in a subscript that is more than `var + constant`?
bool in_compound(IrBuilder& b, const IterVar& iter, const Access& access) {
  VarRanges inside;
  inside.bind(iter.var, iter.extent);
  return std::any_of(access.region.begin(), access.region.end(), [&](const Range& range) {
    if (!mentions(range.min, iter.var->id)) return false;
    const Linear rest = to_linear(b, range.min, inside) - Linear::of(iter.var);
    return !is_one(range.extent) || !rest.is_constant();
  });
}

// Variables that no subscript `var + constant` ties down.
void solve_by_map(IrBuilder& b, const Block& block, const Access& access, const BufferRegion& box,
                  const VarRanges& ranges, std::vector<IterRange>& out) {
  bool open = false;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const IterVar& iter = block.iters[i];
    if (!is_open(iter, out[i]) || !in_compound(b, iter, access)) continue;
    for (std::size_t d = 0; d < box.box.size() && is_open(iter, out[i]); ++d) {
      if (has_load(box.box[d].min)) continue;
      const auto run = tiles_that_meet(b, iter, access.region[d], box.box[d], ranges);
      if (!run) continue;
      narrow_by_map(b, out[i], *run, ranges);
      out[i].by_map = true;
    }
    open = open || is_open(iter, out[i]);
  }
  if (!open) return;
  const std::vector<VarRun> runs = instances_that_meet(b, block, access, box, ranges);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (is_open(block.iters[i], out[i])) narrow_by_map(b, out[i], runs[i], ranges);
  }
}

}  // namespace

std::vector<IterRange> solve_iters(IrBuilder& b, const Block& block, const Access& access,
                                   const BufferRegion& box, const VarRanges& ranges) {
  std::vector<IterRange> out(block.iters.size());
  VarRanges inside;
  for (const IterVar& iter : block.iters) inside.bind(iter.var, iter.extent);
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    const IterVar& iter = block.iters[i];
    out[i].extent = iter.extent;
    if (iter.kind != IterKind::kSpatial) continue;
    for (std::size_t d = 0; d < access.region.size(); ++d) {
      if (constant(access.region[d].extent) != 1) continue;
      if (!may_narrow(out[i].extent, box.box[d].extent)) continue;
      const Linear offset = to_linear(b, access.region[d].min, inside) - Linear::of(iter.var);
      if (!offset.is_constant()) continue;
      const Expr min = b.sub(box.box[d].min, b.int_imm(offset.constant));
      const std::optional<IterRange> found = narrowed(b, out[i], min, box.box[d].extent, ranges);
      if (found) out[i] = *found;
    }
  }
  // Of tile parameters only `var + constant` says the same for all values.
  const bool closed = ranges.domain() == nullptr || ranges.domain()->empty();
  if (closed) solve_by_map(b, block, access, box, ranges, out);
  return out;
}

Expr bounds_guard(IrBuilder& b, const IterVar& iter, const IterRange& range,
                  const VarRanges& ranges) {
  if (!range.min.defined()) return {};
  const Leaves leaves = leaves_domain(b, iter, range, ranges);
  Expr guard;
  if (leaves.below) guard = b.le(b.int_imm(0), iter.binding);
  if (leaves.above) {
    const Expr below = b.lt(iter.binding, iter.extent);
    guard = conjoin(b, guard, below);
  }
  return guard;
}

}  // namespace prunerc::schedule
