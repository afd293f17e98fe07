// add_unit_loop(@L) or add_unit_loop_block(@B): a loop of one iteration goes around, for what
// matches forms. Needs: nothing. After: the same instances in the same order.
//   block @B [v: S(1) = 0] { T[v] = X[v] }
// ~>
//   for u in 1 @L { block @B [v: S(1) = 0] { T[v] = X[v] } }
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

Applied wrap(const Program& program, const Site& site) {
  IrBuilder b(program);
  Applied out;
  const LoopId id = b.fresh_loop_id();
  out.outputs.emplace_back(id);
  const Stmt loop = make_loop(b, b.fresh_var("u"), 1, site.path.back(), id);
  out.program = b.finish(replace_at(b, site, loop));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kAddUnitLoop>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_loop(program, call.loop(0)));
  return wrap(program, site);
}

template <>
Result<Applied> run<PrimitiveKind::kAddUnitLoopBlock>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_block(program, call.block(0)));
  return wrap(program, site);
}

}  // namespace prunerc::schedule
