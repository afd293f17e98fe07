// annotate(loop or block, key, value):                       unannotate(loop or block, key):
//     for i in N @L { ... }                                      for i in N @L {key = 1} { ... }
//   ~>                                                         ~>
//     for i in N @L {key = value} { ... }                        for i in N @L { ... }
//
// Requires: annotate: the key is an identifier, and not one that a primitive sets after a check of
// its own (pipeline.cc). An attribute of that key is replaced. unannotate: the key is there; a
// pipeline goes as a whole, from its loop.
// Legal because: attributes are hints; whoever reads one checks it.
#include "schedule/primitive.h"
#include "schedule/rewrite/attributes.h"
#include "schedule/rewrite/site.h"

#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

class AnnotatePlan {
 public:
  const Site& site() const { return site_; }
  const std::vector<Attr>& attrs() const { return attrs_; }

 private:
  friend Result<AnnotatePlan> plan_annotate(Site, std::span<const Attr>, const std::string&,
                                            int64_t);
  Site site_;
  std::vector<Attr> attrs_;  // keys borrow from the program and the call
};

bool is_identifier(const std::string& key) {
  if (key.empty() || std::isdigit(static_cast<unsigned char>(key[0])) != 0) return false;
  for (const char c : key) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '_') return false;
  }
  return true;
}

Result<AnnotatePlan> plan_annotate(Site site, std::span<const Attr> present, const std::string& key,
                                   int64_t value) {
  if (!is_identifier(key)) return error(Diag::kAttrKey, key);
  if (const char* setter = setter_of(key)) {
    return error(Diag::kAttrReserved, key, std::string(setter));
  }
  AnnotatePlan plan;
  plan.site_ = std::move(site);
  plan.attrs_.assign(present.begin(), present.end());
  for (Attr& attr : plan.attrs_) {
    if (attr.key != key) continue;
    attr.value = value;
    return plan;
  }
  plan.attrs_.push_back({key, value});
  return plan;
}

Applied apply_annotate(const Program& program, const AnnotatePlan& plan) {
  IrBuilder b(program);
  const Stmt changed = with_attrs(b, plan.site().path.back(), plan.attrs());
  Applied out;
  out.program = b.finish(replace_at(b, plan.site(), changed));
  return out;
}

class UnannotatePlan {
 public:
  const Site& site() const { return site_; }
  const std::string& key() const { return key_; }

 private:
  friend Result<UnannotatePlan> plan_unannotate(Site, const DiagArg&, const std::string&);
  Site site_;
  std::string key_;
};

Result<UnannotatePlan> plan_unannotate(Site site, const DiagArg& id, const std::string& key) {
  const std::span<const Attr> present = attrs_of(site.path.back());
  const bool found = std::any_of(present.begin(), present.end(),
                                 [&](const Attr& attr) { return attr.key == key; });
  if (!found) return error(Diag::kAttrMissing, id, key);
  if (key == kPipelineStage || key == kPipelineOrder) {
    return error(Diag::kAttrReserved, key, std::string("software_pipeline"));
  }
  UnannotatePlan plan;
  plan.site_ = std::move(site);
  plan.key_ = key;
  return plan;
}

Applied apply_unannotate(const Program& program, const UnannotatePlan& plan) {
  IrBuilder b(program);
  Stmt changed = without_attr(b, plan.site().path.back(), plan.key());
  if (plan.key() == kPipeline) {
    // What the stages of its statements mean is said by the loop's attribute.
    const Stmt body = changed.as<Loop>()->body;
    changed = map_children(
        b, changed,
        [&](Stmt) {
          std::vector<Stmt> children;
          for (Stmt child : children_of(body)) {
            children.push_back(
                without_attr(b, without_attr(b, child, kPipelineStage), kPipelineOrder));
          }
          return b.seq(children);
        },
        [](Expr e) { return e; });
  }
  Applied out;
  out.program = b.finish(replace_at(b, plan.site(), changed));
  return out;
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kAnnotateLoop>(const Program& program, const Call& call) {
  PRUNERC_TRY(Site site, find_loop(program, call.loop(0)));
  const std::span<const Attr> present = site.loop()->attrs;
  PRUNERC_TRY(const AnnotatePlan plan,
              plan_annotate(std::move(site), present, call.text(1), call.integer(2)));
  return apply_annotate(program, plan);
}

template <>
Result<Applied> run<PrimitiveKind::kAnnotateBlock>(const Program& program, const Call& call) {
  PRUNERC_TRY(Site site, find_block(program, call.block(0)));
  const std::span<const Attr> present = site.block()->attrs;
  PRUNERC_TRY(const AnnotatePlan plan,
              plan_annotate(std::move(site), present, call.text(1), call.integer(2)));
  return apply_annotate(program, plan);
}

template <>
Result<Applied> run<PrimitiveKind::kUnannotateLoop>(const Program& program, const Call& call) {
  PRUNERC_TRY(Site site, find_loop(program, call.loop(0)));
  PRUNERC_TRY(const UnannotatePlan plan,
              plan_unannotate(std::move(site), call.loop(0), call.text(1)));
  return apply_unannotate(program, plan);
}

template <>
Result<Applied> run<PrimitiveKind::kUnannotateBlock>(const Program& program, const Call& call) {
  PRUNERC_TRY(Site site, find_block(program, call.block(0)));
  PRUNERC_TRY(const UnannotatePlan plan,
              plan_unannotate(std::move(site), call.block(0), call.text(1)));
  return apply_unannotate(program, plan);
}

}  // namespace prunerc::schedule
