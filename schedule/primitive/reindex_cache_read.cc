// reindex_cache_read(@C, 0, "shared", "(i, r) -> (r, i)"): the block reads through a copy laid out
// by a map. Needs: one tuple of subscripts; the map is injective on the block's variables
// (rewrite/reindex.h). After: the copy carries the element of each instance, and final values.
//   block @C [vi: S(4) = i, vr: R(3) = r] { init { .. } Y[vi] = Y[vi] + X[vi*2 + vr] }
// ~>
//   block "X_reindex" @B1 [v0: S(4) = ax0, v1: S(3) = ax1] { X_reindex[v1, v0] = X[v0*2 + v1] }
//   block @C [vi: S(4) = i, vr: R(3) = r] { init { .. } Y[vi] = Y[vi] + X_reindex[vr, vi] }
#include "schedule/rewrite/reindex.h"

namespace prunerc::schedule {

template <>
Result<Applied> run<PrimitiveKind::kReindexCacheRead>(const ir::Program& program,
                                                      const Call& call) {
  return run_reindex(program,
                     {call.block(0), Side::kRead, call.integer(1), call.text(2), call.text(3)});
}

}  // namespace prunerc::schedule
