// storage_align(@P, 0, 0, 32, 8): rows of an axis start at multiples of a factor, plus an offset.
// Needs: the written buffer is an intermediate that is not swizzled; axis within the rank
// (negative: from the end), factor from 1 to 2^31 - 1, offset from 0 below factor. After: the same
// values; an attribute says how far apart rows lie, in elements.
//   block @P [v: S(8) = i] { T[v] = X[v] }
// ~>
//   block @P [v: S(8) = i] {align_factor_0_0 = 32, align_offset_0_0 = 8} { T[v] = X[v] }
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/buffer.h"
#include "schedule/rewrite/site.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct AlignPlan {
  Site site;
  std::string place;  // "W_A": written buffer and axis
  int64_t factor = 1, offset = 0;
};

Error bad_argument(const char* what, const std::string& wanted, int64_t found) {
  return error(Diag::kAlignArgument, std::string(what), wanted, found);
}

Result<AlignPlan> plan_align(const Program& program, const Call& call) {
  AlignPlan plan;
  PRUNERC_TRY(plan.site, find_block(program, call.block(0)));
  PRUNERC_TRY(const Buffer buffer,
              written_intermediate(program, *plan.site.block(), call.integer(1)));
  const int64_t rank = static_cast<int64_t>(buffer.shape.size());
  const int64_t axis = call.integer(2);
  if (axis < -rank || axis >= rank) {
    return bad_argument("axis", "from " + std::to_string(-rank) + " below " + std::to_string(rank),
                        axis);
  }
  plan.factor = call.integer(3);
  plan.offset = call.integer(4);
  if (plan.factor < 1 || plan.factor > kMaxAlignFactor) {
    return bad_argument("factor", "from 1 to " + std::to_string(kMaxAlignFactor), plan.factor);
  }
  if (plan.offset < 0 || plan.offset >= plan.factor) {
    return bad_argument("offset", "from 0 below the factor", plan.offset);
  }
  if (const std::optional<int64_t> bytes = layout_attr(program, buffer.id, kSwizzle)) {
    return error(Diag::kSwizzleForm, std::string(buffer.name), *bytes,
                 std::string("storage_align would move its rows"));
  }
  plan.place =
      std::to_string(call.integer(1)) + "_" + std::to_string(axis < 0 ? axis + rank : axis);
  return plan;
}

Applied apply_align(const Program& program, const AlignPlan& plan) {
  IrBuilder b(program);
  Stmt block = plan.site.path.back();
  block = with_attr(b, block, std::string(kAlignFactor) + plan.place, plan.factor);
  block = with_attr(b, block, std::string(kAlignOffset) + plan.place, plan.offset);
  return {b.finish(replace_at(b, plan.site, block)), {}, {}};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kStorageAlign>(const Program& program, const Call& call) {
  PRUNERC_TRY(const AlignPlan plan, plan_align(program, call));
  return apply_align(program, plan);
}

}  // namespace prunerc::schedule
