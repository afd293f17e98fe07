#include "schedule/legality/preimage.h"

#include "ir/arith/linear.h"
#include "ir/arith/prove.h"
#include "ir/arith/simplify.h"
#include "schedule/legality/bijection.h"
#include "schedule/rewrite/site.h"

#include <algorithm>
#include <string>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

// Positions of the box that are tried for a number of values.
constexpr ProveOptions kFew = {.max_points = 5'000};

// [first, last] with a constant number of values, at least as many as there are.
std::optional<VarRun> run_between(IrBuilder& b, const Linear& first, const Linear& last,
                                  std::optional<int64_t> at_most, const VarRanges& ranges) {
  const Linear count = last - first + 1;
  if (count.overflow || count.has_data) return std::nullopt;
  const Interval known = interval_of(count, ranges);
  if (known.is_bounded()) at_most = std::min(at_most.value_or(known.hi), known.hi);
  if (!at_most || *at_most < 1) return std::nullopt;
  // A quotient may take one value more where the box stands across a multiple of the divisor.
  for (int64_t fewer = 1; fewer < *at_most && !count.is_constant(); fewer *= 2) {
    if (prove(b.le(to_expr(b, count), b.int_imm(fewer)), ranges, kFew) == Proof::kYes) {
      at_most = fewer;
    }
  }
  return VarRun{to_expr(b, first), b.int_imm(*at_most)};
}

}  // namespace

std::optional<VarRun> tiles_that_meet(IrBuilder& b, const IterVar& iter, const Range& access,
                                      const Range& box, const VarRanges& ranges) {
  VarRanges inside;
  inside.bind(iter.var, iter.extent);
  const Linear begin = to_linear(b, access.min, inside);
  const std::optional<int64_t> width = constant(access.extent);
  if (begin.overflow || begin.terms.size() != 1 || begin.terms[0].degree != 1 || !width) {
    return std::nullopt;
  }
  const Var* var = begin.terms[0].atoms[0].as<Var>();
  const int64_t step = begin.terms[0].coef;
  if (var == nullptr || var->id != iter.var->id || step < 1 || *width < 1) return std::nullopt;
  if (step == 1 && *width == 1) return std::nullopt;
  // step*v + c + width > min and step*v + c < min + extent, with c the constant.
  const Expr from = b.add(box.min, b.int_imm(step - *width - begin.constant));
  const Expr to = b.add(box.min, b.sub(box.extent, b.int_imm(1 + begin.constant)));
  const Linear first = to_linear(b, b.floordiv(from, b.int_imm(step)), ranges);
  const Linear last = to_linear(b, b.floordiv(to, b.int_imm(step)), ranges);
  std::optional<int64_t> at_most;
  if (const std::optional<int64_t> extent = constant(box.extent)) {
    at_most = floor_div(*extent + *width - 2, step) + 1;
  }
  return run_between(b, first, last, at_most, ranges);
}

std::vector<VarRun> instances_that_meet(IrBuilder& b, const Block& block, const Access& access,
                                        const BufferRegion& box, const VarRanges& ranges) {
  std::vector<Expr> indices;
  for (const Range& range : access.region) {
    if (!is_one(range.extent)) return {};
    indices.push_back(range.min);
  }
  std::vector<IterVar> vars;
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    const auto uses = [&](Expr index) { return mentions(index, block.iters[i].var->id); };
    if (block.iters[i].kind != IterKind::kSpatial) continue;
    if (std::none_of(indices.begin(), indices.end(), uses)) continue;
    vars.push_back(block.iters[i]);
    places.push_back(i);
  }
  const std::optional<Bijection> map = Bijection::of(b, vars, indices);
  if (!map) return {};
  // Each element of the box, by its distance from the first one.
  VarRanges inner = ranges;
  std::vector<VarId> offsets;
  std::vector<Expr> element;
  for (const Range& range : box.box) {
    if (has_load(range.min) || !constant(range.extent)) return {};
    const Var* offset = b.fresh_var("e");
    inner.bind(offset, range.extent);
    offsets.push_back(offset->id);
    element.push_back(b.add(range.min, Expr(offset)));
  }
  const std::vector<Expr> instance = map->instance_at(b, element, inner);
  std::vector<VarRun> out(block.iters.size());
  for (std::size_t k = 0; k < instance.size(); ++k) {
    const Linear value = to_linear(b, instance[k], inner);
    const auto first = eliminate_vars(b, value, Bound::kLower, inner, offsets);
    const auto last = eliminate_vars(b, value, Bound::kUpper, inner, offsets);
    if (!first || !last) continue;
    if (const auto run = run_between(b, *first, *last, {}, ranges)) out[places[k]] = *run;
  }
  return out;
}

}  // namespace prunerc::schedule
