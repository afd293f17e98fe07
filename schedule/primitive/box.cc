#include "schedule/primitive/box.h"

#include "ir/analysis/iter_map.h"
#include "ir/equal.h"

#include <vector>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

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

bool writes_whole_box(IrBuilder& b, const LeafBlock& leaf, const Access& access,
                      VarRanges& ranges) {
  if (!is_point(access)) return false;
  const BufferRegion bound = bound_region(b, *leaf.block, access);
  const VarRanges::Mark mark = ranges.mark();
  std::vector<const Var*> vars;
  for (const Loop* loop : leaf.loops) {
    ranges.bind(loop->var, loop->extent);
    vars.push_back(loop->var);
  }
  // The block's own guard only cuts off what is outside its iteration domain (DESIGN.md, D9), so
  // the box is judged without it and clipped by whoever uses it.
  bool whole = true;
  std::vector<Expr> indices;
  for (const Range& range : bound.box) indices.push_back(range.min);
  const IterMapResult found =
      detect_iter_map(b, indices, vars, {}, ranges, IterMapLevel::kSurjective);
  whole = found.ok();
  for (std::size_t i = 0; whole && i < found.map.indices.size(); ++i) {
    const std::vector<IterSplit>& splits = found.map.indices[i].splits;
    if (splits.empty()) continue;
    const Term& last = splits.back().scale;
    whole = last.degree == 0 && last.coef == 1;
  }
  ranges.rewind(mark);
  return whole;
}

}  // namespace prunerc::schedule
