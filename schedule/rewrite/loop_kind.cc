#include "schedule/rewrite/loop_kind.h"

#include "ir/thread_axis.h"
#include "ir/visit.h"

#include <string>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

namespace {

bool conflicts(LoopKind wanted, LoopKind other, bool other_is_inside) {
  // A thread may run vector instructions; nothing else mixes with a kernel.
  if (is_thread_axis(other)) return wanted == LoopKind::kParallel || other_is_inside;
  if (other != LoopKind::kParallel && other != LoopKind::kVectorized) return false;
  // Vectorized inside parallel is the one nesting that makes sense.
  return other_is_inside ? wanted == other || wanted == LoopKind::kVectorized
                         : wanted == other || wanted == LoopKind::kParallel;
}

}  // namespace

Result<Site> find_serial_loop(const Program& program, LoopId id) {
  PRUNERC_TRY(Site site, find_serial_or_bound_loop(program, id));
  const Loop& loop = *site.loop();
  if (loop.loop_kind != LoopKind::kSerial) {
    return error(Diag::kLoopNotSerial, id, std::string(to_string(loop.loop_kind)));
  }
  return site;
}

Result<Site> find_serial_or_bound_loop(const Program& program, LoopId id) {
  PRUNERC_TRY(Site site, find_loop(program, id));
  const Loop& loop = *site.loop();
  if (loop.loop_kind != LoopKind::kSerial && !is_thread_axis(loop.loop_kind)) {
    return error(Diag::kLoopNotSerial, id, std::string(to_string(loop.loop_kind)));
  }
  PRUNERC_TRY_VOID(check_extent(loop));
  return site;
}

Result<void> check_loop_nesting(const Site& site, LoopKind wanted) {
  const Loop* conflict = nullptr;
  for (const Stmt s : site.path) {
    const Loop* loop = s.as<Loop>();
    if (loop != nullptr && loop != site.loop() && conflicts(wanted, loop->loop_kind, false)) {
      conflict = loop;
    }
  }
  walk(
      site.loop()->body,
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        if (loop != nullptr && conflicts(wanted, loop->loop_kind, true)) conflict = loop;
        return true;
      },
      [](Expr) {});
  if (conflict == nullptr) return {};
  return error(Diag::kLoopNestedParallel, site.loop()->id, std::string(to_string(wanted)),
               conflict->id);
}

Applied with_loop_kind(const Program& program, const Site& site, LoopKind kind) {
  IrBuilder b(program);
  Loop copy = *site.loop();
  copy.loop_kind = kind;
  return {b.finish(replace_at(b, site, b.loop(copy))), {}, {}};
}

}  // namespace prunerc::schedule
