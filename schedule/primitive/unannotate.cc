// unannotate_loop(@L, "key") and unannotate_block(@B, "key"): an attribute goes.
// Needs: the attribute is there; stages of a software_pipeline go with their loop's attribute only.
// After: the same program without the hint.
//   for i in 8 @L {unroll = 4} { block @B [v: S(8) = i] { T[v] = X[v] } }
// ~>
//   for i in 8 @L { block @B [v: S(8) = i] { T[v] = X[v] } }
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/site.h"

#include <algorithm>
#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

// What the stages of its statements mean is said by the loop's attribute.
Stmt without_stages(IrBuilder& b, Stmt pipelined) {
  Loop loop = *pipelined.as<Loop>();
  std::vector<Stmt> children;
  for (Stmt child : children_of(loop.body)) {
    children.push_back(without_attr(b, without_attr(b, child, kPipelineStage), kPipelineOrder));
  }
  loop.body = b.seq(children);
  return b.loop(loop);
}

Result<Applied> unannotate(const Program& program, const Site& site, const DiagArg& id,
                           const std::string& key) {
  const std::span<const Attr> present = attrs_of(site.path.back());
  const bool found = std::any_of(present.begin(), present.end(),
                                 [&](const Attr& attr) { return attr.key == key; });
  if (!found) return error(Diag::kAttrMissing, id, key);
  if (key == kPipelineStage || key == kPipelineOrder) {
    return error(Diag::kAttrReserved, key, std::string("software_pipeline"));
  }
  IrBuilder b(program);
  Stmt changed = without_attr(b, site.path.back(), key);
  if (key == kPipeline && changed.as<Loop>() != nullptr) changed = without_stages(b, changed);
  return Applied{b.finish(replace_at(b, site, changed)), {}, {}};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kUnannotateLoop>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_loop(program, call.loop(0)));
  return unannotate(program, site, call.loop(0), call.text(1));
}

template <>
Result<Applied> run<PrimitiveKind::kUnannotateBlock>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_block(program, call.block(0)));
  return unannotate(program, site, call.block(0), call.text(1));
}

}  // namespace prunerc::schedule
