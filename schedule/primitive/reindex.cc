// reindex(@C, "read", 0): the block reads (or writes) a buffer through a copy with one dimension
// per variable of the subscripts. Needs: one tuple of subscripts (rewrite/reindex.h). After: the
// copy carries the element of each instance, and final values.
//   block @C [vi: S(4) = i, vr: R(3) = r] { init { .. } Y[vi] = Y[vi] + X[vi*2 + vr] }
// ~>
//   block "X_reindex" @B1 [v0: S(4) = ax0, v1: S(3) = ax1] { X_reindex[v0, v1] = X[v0*2 + v1] }
//   block @C [vi: S(4) = i, vr: R(3) = r] { init { .. } Y[vi] = Y[vi] + X_reindex[vi, vr] }
#include "schedule/rewrite/reindex.h"

namespace prunerc::schedule {

template <>
Result<Applied> run<PrimitiveKind::kReindex>(const ir::Program& program, const Call& call) {
  const std::string& side = call.text(1);
  if (side != "read" && side != "write") return error(Diag::kAccessSide, side);
  return run_reindex(program, {call.block(0), side == "read" ? Side::kRead : Side::kWrite,
                               call.integer(2), "global", ""});
}

}  // namespace prunerc::schedule
