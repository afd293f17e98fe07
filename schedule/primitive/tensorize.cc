// tensorize(loop, "x86_vpdpbusd_16x4"):
//     B: [..] { for i in 16 @L { for k in 4 { C[..i] = C[..i] + i32(A[..k])*i32(B[..i, k]) } } }
//   ~>  tensorize(@L, "x86_vpdpbusd_16x4")
//     B: [..] { for i in 16 @L {tensor_x86_vpdpbusd_16x4 = 1} { for k in 4 { .. } } }
//
// A loop outside of blocks is blockized first. The nest keeps its scalar meaning, for the
// interpreter, the printer and every analysis; the attribute says that code generation must take
// the instruction. It compares the nest with the description again and refuses if it cannot.
//
// Requires: a plain loop that holds nothing but loops and one store, which are what the registered
// description says: extents, expression up to commutativity, element types, strides in memory.
// Legal because: nothing changes but an attribute.
#include "ir/tensor/intrinsic.h"
#include "schedule/primitive.h"
#include "schedule/primitive/blockize.h"

#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class TensorizePlan {
 public:
  const Program& program() const { return blockized_.program; }
  const std::vector<Output>& outputs() const { return blockized_.outputs; }
  const Site& site() const { return site_; }
  const TensorIntrinsic& intrinsic() const { return *intrinsic_; }

 private:
  friend Result<TensorizePlan> plan_tensorize(const Program&, LoopId, const std::string&);
  Applied blockized_;
  Site site_;  // in that program
  const TensorIntrinsic* intrinsic_ = nullptr;
};

Result<TensorizePlan> plan_tensorize(const Program& program, LoopId id, const std::string& name) {
  TensorizePlan plan;
  PRUNERC_TRY(plan.intrinsic_, find_tensor(name));
  PRUNERC_TRY(const Site before, find_loop(program, id));
  if (const Block* block = before.scope()) {
    plan.blockized_ = {program, {block->id}, {}};
  } else {
    PRUNERC_TRY(const BlockizePlan blockize, plan_blockize(program, id));
    plan.blockized_ = apply_blockize(program, blockize);
  }
  PRUNERC_TRY(plan.site_, find_loop(plan.program(), id));
  PRUNERC_TRY_VOID(check_plain(*plan.site_.loop()));
  const auto matches = [&]() -> Result<void> {
    IrBuilder b(plan.program());
    const VarRanges ranges = ranges_at(plan.program(), plan.site_);
    const auto found = match_tensor(b, *plan.site_.loop(), *plan.intrinsic_, ranges);
    return found.ok() ? Result<void>() : Result<void>(found.error());
  };
  PRUNERC_TRY_VOID(on_instance(program, matches));
  return plan;
}

Applied apply_tensorize(const TensorizePlan& plan) {
  IrBuilder b(plan.program());
  Loop loop = *plan.site().loop();
  const std::string key = tensor_attr(plan.intrinsic());
  const std::vector<Attr> attrs = {{b.copy(std::string_view(key)), 1}};
  loop.attrs = attrs;
  return {b.finish(replace_at(b, plan.site(), b.loop(loop))), plan.outputs(), {}};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kTensorize>(const Program& program, const Call& call) {
  PRUNERC_TRY(const TensorizePlan plan, plan_tensorize(program, call.loop(0), call.text(1)));
  return apply_tensorize(plan);
}

}  // namespace prunerc::schedule
