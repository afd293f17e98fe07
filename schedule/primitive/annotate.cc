// annotate(loop or block, key, value):
//     for i in N @L { ... }   ~>   for i in N @L {key = value} { ... }
//
// Requires: the key is an identifier. An attribute of that key is replaced.
// Legal because: attributes are hints; whoever reads one checks it.
#include "schedule/primitive.h"
#include "schedule/primitive/site.h"

#include <cctype>
#include <string>

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
  std::vector<Attr> attrs = plan.attrs();
  for (Attr& attr : attrs) attr.key = b.copy(attr.key);
  Stmt changed;
  if (const Loop* loop = plan.site().loop()) {
    Loop copy = *loop;
    copy.attrs = attrs;
    changed = b.loop(copy);
  } else {
    Block copy = *plan.site().block();
    copy.attrs = attrs;
    changed = b.block(copy);
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

}  // namespace prunerc::schedule
