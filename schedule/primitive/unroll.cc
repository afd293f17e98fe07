// unroll(@L): the body is repeated once for each iteration when code is generated.
// Needs: @L serial. After: the same iterations in the same order.
//   for k in 4 @L { block @B [v: S(4) = k] { T[v] = X[v] } }
// ~>
//   for k in 4 @L unrolled { block @B [v: S(4) = k] { T[v] = X[v] } }
#include "schedule/rewrite/loop_kind.h"

namespace prunerc::schedule {

template <>
Result<Applied> run<PrimitiveKind::kUnroll>(const ir::Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_serial_loop(program, call.loop(0)));
  return with_loop_kind(program, site, ir::LoopKind::kUnrolled);
}

}  // namespace prunerc::schedule
