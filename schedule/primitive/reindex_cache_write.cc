// reindex_cache_write(@P, 0, "local", "(i) -> (i)"): the block writes through a copy laid out by a
// map. Needs: sole writer, one store, no reader in the same statement; the map as for
// reindex_cache_read. After: the copy out follows the statement and drops nothing: the whole domain
// runs.
//   block @P [v: S(32) = i] { Y[v // 8, v % 8] = X[v] }
// ~>
//   block @P [v: S(32) = i] { Y_reindex[v] = X[v] }
//   block "Y_reindex" @B1 [v0: S(32) = ax0] { Y[v0 // 8, v0 % 8] = Y_reindex[v0] }
#include "schedule/rewrite/reindex.h"

namespace prunerc::schedule {

template <>
Result<Applied> run<PrimitiveKind::kReindexCacheWrite>(const ir::Program& program,
                                                       const Call& call) {
  return run_reindex(program,
                     {call.block(0), Side::kWrite, call.integer(1), call.text(2), call.text(3)});
}

}  // namespace prunerc::schedule
