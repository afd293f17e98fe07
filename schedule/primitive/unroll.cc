// unroll(@L): the body is repeated once for each iteration when code is generated.
// Needs: @L serial, or an axis that the kernel can spare. After: the same iterations in order.
//   for k in 4 @L { block @B [v: S(4) = k] { T[v] = X[v] } }
// ~>
//   for k in 4 @L unrolled { block @B [v: S(4) = k] { T[v] = X[v] } }
#include "ir/thread_axis.h"
#include "schedule/rewrite/loop_kind.h"

namespace prunerc::schedule {

template <>
Result<Applied> run<PrimitiveKind::kUnroll>(const ir::Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_serial_or_bound_loop(program, call.loop(0)));
  Applied unrolled = with_loop_kind(program, site, ir::LoopKind::kUnrolled);
  PRUNERC_TRY_VOID(ir::check_thread_axes(unrolled.program.root()));
  return unrolled;
}

}  // namespace prunerc::schedule
