// bind(@L, "thread.x"): iterations become an axis of a kernel's launch.
// Needs: @L serial or bound; iterations disjoint as for parallel, where a thread.* loop may feed a
// reduction of a known reducer, and scope shared holds nothing private (D16); the kernel's axes are
// as ir/thread_axis.h wants them. After: threads run at once and combine the reduction among them.
//   for i in 8 @L { block @B [v: S(8) = i] { T[v] = X[v] } }
// ~>
//   for i in 8 @L bind(thread.x) { block @B [v: S(8) = i] { T[v] = X[v] } }
#include "ir/thread_axis.h"
#include "schedule/legality/concurrency.h"
#include "schedule/rewrite/loop_kind.h"

#include <optional>

namespace prunerc::schedule {

template <>
Result<Applied> run<PrimitiveKind::kBind>(const ir::Program& program, const Call& call) {
  const std::optional<ir::LoopKind> kind = ir::loop_kind_from_string(call.text(1));
  if (!kind || !ir::is_thread_axis(*kind)) return error(Diag::kThreadAxisUnknown, call.text(1));
  PRUNERC_TRY(const Site site, find_serial_or_bound_loop(program, call.loop(0)));
  PRUNERC_TRY_VOID(check_concurrent(program, site, *kind));
  Applied bound = with_loop_kind(program, site, *kind);
  PRUNERC_TRY_VOID(ir::check_thread_axes(bound.program.root()));
  return bound;
}

}  // namespace prunerc::schedule
