// double_buffer(@B, 0): two copies of the written buffer may alternate from one iteration to the
// next. Needs: the buffer is an intermediate that lives within one iteration of a loop around @B.
// After: the same values; a lowering may start to fill one copy while the other is read.
//   for k in 4 { block @B [v: S(4) = k] { T[0] = X[v] }  block @C [v: S(4) = k] { Y[v] = T[0] } }
// ~>
//   for k in 4 { block @B [v: S(4) = k] {double_buffer = 0} { T[0] = X[v] }  block @C .. }
#include "schedule/legality/loop_dependence.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/buffer.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

Result<Site> plan_double_buffer(const Program& program, BlockId id, int64_t index) {
  PRUNERC_TRY(Site site, find_block(program, id));
  const Block& block = *site.block();
  PRUNERC_TRY(const BufferId buffer, accessed_buffer(block, block.writes, index));
  if (is_parametric(program)) return site;
  PRUNERC_TRY_VOID(check_intermediate(program, buffer));
  IrBuilder b(program);
  for (const Loop* loop : site.outer_loops()) {
    const Site around = find_loop_in(program.root(), loop->id);
    if (check_holds_blocks(*loop).ok() && lives_in_iteration(b, program, around, buffer)) {
      return site;
    }
  }
  return error(Diag::kBlockNotSimple, id,
               std::string("write a buffer that lives within an iteration of a loop around"));
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kDoubleBuffer>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, plan_double_buffer(program, call.block(0), call.integer(1)));
  return with_attr_at(program, site, kDoubleBuffer, call.integer(1));
}

}  // namespace prunerc::schedule
