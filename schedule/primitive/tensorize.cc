// tensorize(@L, "x86_vpdpbusd_16x4"): a nest stands for an instruction of the registry in
// ir/tensor. Needs: serial loops and one store that are what the description says: extents,
// expression up to commutativity, element types, strides. A loop outside of blocks is blockized
// first. After: the same program with an attribute; code generation compares again (DESIGN.md,
// D22).
//   for i in 16 @L { for k in 4 { C[v*16 + i] = C[v*16 + i] + i32(A[k])*i32(B[v*16 + i, k]) } }
// ~>
//   for i in 16 @L {tensor_x86_vpdpbusd_16x4 = 1} { for k in 4 { C[v*16 + i] = .. } }
#include "ir/tensor/intrinsic.h"
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

struct TensorizePlan {
  Applied blockized;
  Site site;  // in that program
  const TensorIntrinsic* intrinsic = nullptr;

  const Program& program() const { return blockized.program; }
  const std::vector<Output>& outputs() const { return blockized.outputs; }
};

Result<TensorizePlan> plan_tensorize(const Program& program, LoopId id, const std::string& name) {
  TensorizePlan plan;
  PRUNERC_TRY(plan.intrinsic, find_tensor(name));
  PRUNERC_TRY(const Site before, find_loop(program, id));
  if (const Block* block = before.scope()) {
    plan.blockized = {program, {block->id}, {}};
  } else {
    const std::vector<Operand> operands = {id};
    PRUNERC_TRY(plan.blockized, run<PrimitiveKind::kBlockize>(program, Call{operands}));
  }
  PRUNERC_TRY(plan.site, find_loop(plan.program(), id));
  PRUNERC_TRY_VOID(check_serial(*plan.site.loop()));
  const auto matches = [&]() -> Result<void> {
    IrBuilder b(plan.program());
    const VarRanges ranges = ranges_at(plan.program(), plan.site);
    const auto found = match_tensor(b, *plan.site.loop(), *plan.intrinsic, ranges);
    return found.ok() ? Result<void>() : Result<void>(found.error());
  };
  PRUNERC_TRY_VOID(on_instance(program, matches));
  return plan;
}

Applied apply_tensorize(const TensorizePlan& plan) {
  IrBuilder b(plan.program());
  Loop loop = *plan.site.loop();
  const std::string key = tensor_attr(*plan.intrinsic);
  const std::vector<Attr> attrs = {{b.copy(std::string_view(key)), 1}};
  loop.attrs = attrs;
  return {b.finish(replace_at(b, plan.site, b.loop(loop))), plan.outputs(), {}};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kTensorize>(const Program& program, const Call& call) {
  PRUNERC_TRY(const TensorizePlan plan, plan_tensorize(program, call.loop(0), call.text(1)));
  return apply_tensorize(plan);
}

}  // namespace prunerc::schedule
