// bulk_copy(loop):
//     for i in 64 @L { for j in 64 { P: S[i, j] = A[y + i, x + j] } }
//   ~>  bulk_copy(@L)
//     for i in 64 @L {bulk_copy = 1} { for j in 64 { P: S[i, j] = A[y + i, x + j] } }
//
// The nest keeps its scalar meaning; the attribute says that the copy engine (TMA) brings the box,
// which code generation compares again. Threads learn from an mbarrier that it has come.
//
// Requires: a plain loop in no loop over threads, around loops and one block that copies to scope
// shared from scope global; one loop over rows of both buffers and one over columns, columns last
// in both; values that are elements, or zeros exactly where the matrix ends; rows that are 16 bytes
// wide, or a multiple, and as far apart in the matrix.
// Legal because: nothing changes but an attribute.
#include "ir/tensor/bulk_copy.h"

#include "ir/thread_axis.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/site.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class BulkPlan {
 public:
  const Site& site() const { return site_; }

 private:
  friend Result<BulkPlan> plan_bulk(const Program&, LoopId);
  Site site_;
};

Result<BulkPlan> plan_bulk(const Program& program, LoopId id) {
  BulkPlan plan;
  PRUNERC_TRY(plan.site_, find_loop(program, id));
  PRUNERC_TRY_VOID(check_plain(*plan.site_.loop()));
  for (const Loop* outer : plan.site_.outer_loops()) {
    if (!is_lane_axis(outer->loop_kind)) continue;
    return error(Diag::kBulkForm, id, std::string("it stands in a loop over threads"));
  }
  const auto matches = [&]() -> Result<void> {
    IrBuilder b(program);
    const auto found = match_bulk_copy(b, *plan.site_.loop(), ranges_at(program, plan.site_));
    return found.ok() ? Result<void>() : Result<void>(found.error());
  };
  PRUNERC_TRY_VOID(on_instance(program, matches));
  return plan;
}

Applied apply_bulk(const Program& program, const BulkPlan& plan) {
  IrBuilder b(program);
  Applied out;
  out.program =
      b.finish(replace_at(b, plan.site(), with_attr(b, plan.site().path.back(), kBulkCopyAttr, 1)));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kBulkCopy>(const Program& program, const Call& call) {
  PRUNERC_TRY(const BulkPlan plan, plan_bulk(program, call.loop(0)));
  return apply_bulk(program, plan);
}

}  // namespace prunerc::schedule
