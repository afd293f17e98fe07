#include "schedule/legality/bijection.h"

#include "ir/support/check.h"
#include "ir/visit.h"
#include "schedule/rewrite/site.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

std::optional<Bijection::Run> run_of(const IterSum& index, const Linear& extent) {
  if (!index.base.is_constant() || !extent.is_constant()) return std::nullopt;
  if (!index.splits.empty()) {
    const Term& step = index.splits.back().scale;
    if (step.degree != 0 || step.coef != 1) return std::nullopt;
  }
  return Bijection::Run{index.base.constant, extent.constant};
}

// An extent from which on every quotient and remainder of the variable comes out even.
int64_t rounded(const IterVar& iter, int64_t extent, std::span<const Expr> indices) {
  constexpr int64_t kMaxMultiple = 1 << 20;
  int64_t multiple = 1;
  for (Expr index : indices) {
    walk(index, [&](Expr e) {
      const bool divides = e.kind() == ExprKind::kFloorDiv || e.kind() == ExprKind::kFloorMod;
      if (!divides || !mentions(e, iter.var->id)) return true;
      const int64_t by = constant(as_binary(e)->rhs).value_or(1);
      if (by > 1 && by < kMaxMultiple) multiple = std::min(std::lcm(multiple, by), kMaxMultiple);
      return true;
    });
  }
  return (extent + multiple - 1) / multiple * multiple;
}

}  // namespace

std::optional<Bijection> Bijection::of(IrBuilder& b, std::span<const IterVar> vars,
                                       std::span<const Expr> indices) {
  Bijection out;
  VarRanges exact, wider;
  bool same = true;
  for (const IterVar& iter : vars) {
    const std::optional<int64_t> extent = constant(iter.extent);
    if (!extent) return std::nullopt;
    const int64_t even = rounded(iter, *extent, indices);
    same = same && even == *extent;
    exact.bind(iter.var, iter.extent);
    wider.bind(iter.var, b.int_imm(even));
    out.vars_.push_back(iter.var);
  }
  // What tells more instances apart tells these apart; their elements are then no box.
  IterMapResult found =
      detect_iter_map(b, indices, out.vars_, {}, same ? exact : wider, IterMapLevel::kBijective);
  if (!found.ok() || !found.map.bijective) return std::nullopt;
  out.map_ = std::move(found.map);
  if (!same) return out;
  std::vector<Run> box;
  for (std::size_t d = 0; d < indices.size(); ++d) {
    const std::optional<Run> run = run_of(out.map_.indices[d], out.map_.extents[d]);
    if (!run) return out;
    box.push_back(*run);
  }
  out.box_ = std::move(box);
  return out;
}

std::vector<Expr> Bijection::instance_at(IrBuilder& b, std::span<const Expr> element,
                                         const VarRanges& ranges) const {
  Result<std::vector<Expr>> found = invert_iter_map(b, map_, vars_, element, ranges);
  PRUNERC_CHECK(found.ok(), "of() asked for a bijective map");
  return std::move(found).value();
}

Expr inside_box(IrBuilder& b, std::span<const Bijection::Run> box, std::span<const Expr> shape,
                std::span<const Expr> element) {
  Expr out;
  for (std::size_t d = 0; d < box.size(); ++d) {
    const int64_t end = box[d].first + box[d].count;
    if (box[d].first > 0) {
      const Expr above = b.le(b.int_imm(box[d].first), element[d]);
      out = conjoin(b, out, above);
    }
    if (constant(shape[d]) != end) {
      const Expr below = b.lt(element[d], b.int_imm(end));
      out = conjoin(b, out, below);
    }
  }
  return out;
}

}  // namespace prunerc::schedule
