// parallel(@L): iterations are spread over the cores.
// Needs: @L serial; different iterations touch disjoint elements of all that is written below, so a
// reduction loop is refused whatever kinds its block declares (D8); an intermediate that lives
// inside one iteration counts as each iteration's own (D10). After: the same values in any order.
//   for i in 8 @L { block @B [v: S(8) = i] { T[v] = X[v] } }
// ~>
//   for i in 8 @L parallel { block @B [v: S(8) = i] { T[v] = X[v] } }
#include "schedule/legality/concurrency.h"
#include "schedule/rewrite/loop_kind.h"

namespace prunerc::schedule {

template <>
Result<Applied> run<PrimitiveKind::kParallel>(const ir::Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_serial_loop(program, call.loop(0)));
  PRUNERC_TRY_VOID(check_loop_nesting(site, ir::LoopKind::kParallel));
  PRUNERC_TRY_VOID(check_concurrent(program, site, ir::LoopKind::kParallel));
  return with_loop_kind(program, site, ir::LoopKind::kParallel);
}

}  // namespace prunerc::schedule
