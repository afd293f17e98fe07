#include "schedule/primitive/iter_range.h"

#include "ir/analysis/linear.h"
#include "ir/analysis/simplify.h"

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

std::vector<IterRange> solve_iters(IrBuilder& b, const Block& block, const Access& access,
                                   const BufferRegion& box, const VarRanges& ranges) {
  std::vector<IterRange> out(block.iters.size());
  VarRanges inside;
  for (const IterVar& iter : block.iters) inside.bind(iter.var, iter.extent);
  for (std::size_t i = 0; i < block.iters.size(); ++i) {
    const IterVar& iter = block.iters[i];
    out[i].extent = *constant(iter.extent);
    if (iter.kind != IterKind::kSpatial) continue;
    for (std::size_t d = 0; d < access.region.size(); ++d) {
      const std::optional<int64_t> extent = constant(box.box[d].extent);
      if (!extent || constant(access.region[d].extent) != 1 || *extent >= out[i].extent) continue;
      const Linear offset = to_linear(b, access.region[d].min, inside) - Linear::of(iter.var);
      if (!offset.is_constant()) continue;
      out[i].min = simplify(b, b.sub(box.box[d].min, b.int_imm(offset.constant)), ranges);
      out[i].extent = *extent;
    }
  }
  return out;
}

Expr bounds_guard(IrBuilder& b, const IterVar& iter, const IterRange& range,
                  const VarRanges& ranges) {
  if (!range.min.defined()) return {};
  const int64_t domain = *constant(iter.extent);
  const Interval min = interval_of(to_linear(b, range.min, ranges), ranges);
  Expr guard;
  if (min.lo < 0) guard = b.le(b.int_imm(0), iter.binding);
  if (min.hi > domain - range.extent) {
    const Expr below = b.lt(iter.binding, b.int_imm(domain));
    guard = guard.defined() ? b.logical_and(guard, below) : below;
  }
  return guard;
}

}  // namespace prunerc::schedule
