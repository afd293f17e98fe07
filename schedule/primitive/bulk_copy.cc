// bulk_copy(@L): a copy into shared memory is left to the copy engine (TMA). Needs: a serial loop
// in no loop over threads; one block that copies from global to shared, rows and columns in both,
// zeros exactly where the matrix ends, rows of whole 16 bytes and as far apart. After: the same
// program with an attribute; code generation compares again.
//   for i in 64 @L { for j in 64 { block @P [v: S(64) = i, w: S(64) = j] { S[v, w] = A[v, w] } } }
// ~>
//   for i in 64 @L {bulk_copy = 1} { for j in 64 { block @P [v: S(64) = i, w: S(64) = j] { .. } } }
#include "ir/tensor/bulk_copy.h"

#include "ir/thread_axis.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/site.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

Result<Site> plan_bulk_copy(const Program& program, LoopId id) {
  PRUNERC_TRY(Site site, find_loop(program, id));
  PRUNERC_TRY_VOID(check_serial(*site.loop()));
  for (const Loop* outer : site.outer_loops()) {
    if (!is_lane_axis(outer->loop_kind)) continue;
    return error(Diag::kBulkForm, id, std::string("it stands in a loop over threads"));
  }
  const auto matches = [&]() -> Result<void> {
    IrBuilder b(program);
    const auto found = match_bulk_copy(b, *site.loop(), ranges_at(program, site));
    return found.ok() ? Result<void>() : Result<void>(found.error());
  };
  PRUNERC_TRY_VOID(on_instance(program, matches));
  return site;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kBulkCopy>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, plan_bulk_copy(program, call.loop(0)));
  return with_attr_at(program, site, kBulkCopyAttr, 1);
}

}  // namespace prunerc::schedule
