// vectorize(@L): iterations become the lanes of vector instructions.
// Needs: as parallel, but every intermediate is shared by the lanes, so none counts as private.
// After: the same values, all lanes at once.
//   for j in 8 @L { block @B [v: S(8) = j] { T[v] = X[v] } }
// ~>
//   for j in 8 @L vectorized { block @B [v: S(8) = j] { T[v] = X[v] } }
#include "schedule/legality/concurrency.h"
#include "schedule/rewrite/loop_kind.h"

namespace prunerc::schedule {

template <>
Result<Applied> run<PrimitiveKind::kVectorize>(const ir::Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_serial_loop(program, call.loop(0)));
  PRUNERC_TRY_VOID(check_loop_nesting(site, ir::LoopKind::kVectorized));
  PRUNERC_TRY_VOID(check_concurrent(program, site, ir::LoopKind::kVectorized));
  return with_loop_kind(program, site, ir::LoopKind::kVectorized);
}

}  // namespace prunerc::schedule
