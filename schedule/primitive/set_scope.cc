// set_scope(@P, 0, "local"): the written buffer lives somewhere else.
// Needs: an intermediate; in scope shared no thread loses a copy of its own that it needs.
// After: the same values; lowering derives place and size from the scope and the accesses.
//   buffer T: f32[8] global
// ~>
//   buffer T: f32[8] local
#include "ir/thread_axis.h"
#include "ir/visit.h"
#include "schedule/legality/concurrency.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/site.h"

#include <optional>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

// Loops with a thread axis.
std::vector<LoopId> bound_loops(const Program& program) {
  std::vector<LoopId> out;
  walk(
      program.root(),
      [&](Stmt s) {
        const Loop* loop = s.as<Loop>();
        if (loop != nullptr && is_thread_axis(loop->loop_kind)) out.push_back(loop->id);
        return s.as<Block>() == nullptr;
      },
      [](Expr) {});
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kSetScope>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_block(program, call.block(0)));
  PRUNERC_TRY(Buffer changed, written_intermediate(program, *site.block(), call.integer(1)));
  const std::optional<Scope> scope = scope_from_string(call.text(2));
  if (!scope) return error(Diag::kScopeUnknown, call.text(2));
  changed.scope = *scope;
  IrBuilder b(program);
  b.set_buffer(changed);
  Applied out;
  out.program = b.finish(program.root());
  PRUNERC_TRY_VOID(recheck_concurrent(out.program, bound_loops(program)));
  return out;
}

}  // namespace prunerc::schedule
