// parallel(loop), vectorize(loop), unroll(loop), bind(loop, axis):
//     for i in N @L { S(i) }   ~>   for i in N @L parallel { S(i) }        (vectorized, unrolled)
//                              ~>   for i in N @L bind(thread.x) { S(i) }
//
// Requires: L serial with a constant extent. Parallel and vectorize: iterations touch disjoint
// elements of every buffer that is written below, so a reduction over L is refused whatever kinds
// its block declares. Parallel: an intermediate that lives inside one iteration is each iteration's
// own. A parallel loop does not stand inside or around another parallel or vectorized one; a
// vectorized loop has no other vectorized or parallel loop inside or around. Bind: the axes of the
// kernel stay as ir/thread_axis.h wants them, one extent each; a thread.* loop may feed the
// reduction of a known reducer, which the threads then combine; in scope shared nothing is a
// thread's own. Legal because: iterations without common elements (one of them written) can run in
// any order or at once. Cost: O(accesses below L).
#include "ir/thread_axis.h"
#include "ir/visit.h"
#include "schedule/legality/concurrency.h"
#include "schedule/primitive.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class LoopKindPlan {
 public:
  const Site& site() const { return site_; }
  LoopKind kind() const { return kind_; }

 private:
  friend Result<LoopKindPlan> plan_loop_kind(const Program&, LoopId, LoopKind);
  friend Result<LoopKindPlan> plan_bind(const Program&, LoopId, const std::string&);
  Site site_;
  LoopKind kind_ = LoopKind::kSerial;
};

bool conflicts(LoopKind wanted, LoopKind other, bool other_is_inside) {
  // A thread may run vector instructions; nothing else mixes with a kernel.
  if (is_thread_axis(other)) return wanted == LoopKind::kParallel || other_is_inside;
  if (other != LoopKind::kParallel && other != LoopKind::kVectorized) return false;
  // Vectorized inside parallel is the one nesting that makes sense.
  return other_is_inside ? wanted == other || wanted == LoopKind::kVectorized
                         : wanted == other || wanted == LoopKind::kParallel;
}

Result<void> check_nesting(const Site& site, LoopKind wanted) {
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

Result<LoopKindPlan> plan_loop_kind(const Program& program, LoopId id, LoopKind kind) {
  LoopKindPlan plan;
  plan.kind_ = kind;
  PRUNERC_TRY(plan.site_, find_loop(program, id));
  const Loop* loop = plan.site_.loop();
  if (loop->loop_kind != LoopKind::kSerial) {
    return error(Diag::kLoopNotSerial, id, std::string(to_string(loop->loop_kind)));
  }
  PRUNERC_TRY_VOID(check_extent(*loop));
  if (kind == LoopKind::kUnrolled) return plan;
  PRUNERC_TRY_VOID(check_nesting(plan.site_, kind));
  PRUNERC_TRY_VOID(check_concurrent(program, plan.site_, kind));
  return plan;
}

Applied apply_loop_kind(const Program& program, const LoopKindPlan& plan) {
  IrBuilder b(program);
  Loop copy = *plan.site().loop();
  copy.loop_kind = plan.kind();
  Applied out;
  out.program = b.finish(replace_at(b, plan.site(), b.loop(copy)));
  return out;
}

Result<Applied> run_loop_kind(const Program& program, const Call& call, LoopKind kind) {
  PRUNERC_TRY(const LoopKindPlan plan, plan_loop_kind(program, call.loop(0), kind));
  return apply_loop_kind(program, plan);
}

Result<LoopKindPlan> plan_bind(const Program& program, LoopId id, const std::string& axis) {
  LoopKindPlan plan;
  const std::optional<LoopKind> kind = loop_kind_from_string(axis);
  if (!kind || !is_thread_axis(*kind)) return error(Diag::kThreadAxisUnknown, axis);
  plan.kind_ = *kind;
  PRUNERC_TRY(plan.site_, find_loop(program, id));
  const Loop& loop = *plan.site_.loop();
  if (loop.loop_kind != LoopKind::kSerial) {
    return error(Diag::kLoopNotSerial, id, std::string(to_string(loop.loop_kind)));
  }
  PRUNERC_TRY_VOID(check_extent(loop));
  PRUNERC_TRY_VOID(check_concurrent(program, plan.site_, *kind));
  PRUNERC_TRY_VOID(check_thread_axes(apply_loop_kind(program, plan).program.root()));
  return plan;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kBind>(const Program& program, const Call& call) {
  PRUNERC_TRY(const LoopKindPlan plan, plan_bind(program, call.loop(0), call.text(1)));
  return apply_loop_kind(program, plan);
}

template <>
Result<Applied> run<PrimitiveKind::kParallel>(const Program& program, const Call& call) {
  return run_loop_kind(program, call, LoopKind::kParallel);
}

template <>
Result<Applied> run<PrimitiveKind::kVectorize>(const Program& program, const Call& call) {
  return run_loop_kind(program, call, LoopKind::kVectorized);
}

template <>
Result<Applied> run<PrimitiveKind::kUnroll>(const Program& program, const Call& call) {
  return run_loop_kind(program, call, LoopKind::kUnrolled);
}

}  // namespace prunerc::schedule
