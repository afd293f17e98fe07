#include "schedule/rewrite/attributes.h"

#include "ir/tensor/bulk_copy.h"
#include "ir/tensor/intrinsic.h"

#include <algorithm>
#include <iterator>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

const char* setter_of(std::string_view key) {
  if (key == kPipeline || key == kPipelineStage || key == kPipelineOrder) {
    return "software_pipeline";
  }
  if (key == kDoubleBuffer) return "double_buffer";
  if (key == ir::kBulkCopyAttr) return "bulk_copy";
  if (key.substr(0, kSwizzle.size()) == kSwizzle) return "swizzle";
  if (key.substr(0, ir::kTensorAttr.size()) == ir::kTensorAttr) return "tensorize";
  if (key.starts_with(kAlignFactor) || key.starts_with(kAlignOffset)) return "storage_align";
  // Notes that its passes leave each other on loops.
  constexpr std::string_view kInternal[] = {"sync",         "shuffle",    "async",
                                            "async_commit", "ahead",      "ring_buffer",
                                            "fragment",     "async_wait", "shuffle_xor"};
  const bool is_internal =
      key.starts_with("align_") ||
      std::find(std::begin(kInternal), std::end(kInternal), key) != std::end(kInternal);
  return is_internal ? "code generation" : nullptr;
}

std::span<const Attr> attrs_of(Stmt s) {
  if (const Loop* loop = s.as<Loop>()) return loop->attrs;
  if (const Block* block = s.as<Block>()) return block->attrs;
  return {};
}

Stmt with_attrs(IrBuilder& b, Stmt s, std::span<const Attr> attrs) {
  std::vector<Attr> copied(attrs.begin(), attrs.end());
  for (Attr& attr : copied) attr.key = b.copy(attr.key);
  if (const Loop* loop = s.as<Loop>()) {
    Loop copy = *loop;
    copy.attrs = copied;
    return b.loop(copy);
  }
  Block copy = *s.as<Block>();
  copy.attrs = copied;
  return b.block(copy);
}

Stmt with_attr(IrBuilder& b, Stmt s, std::string_view key, int64_t value) {
  const std::span<const Attr> present = attrs_of(s);
  std::vector<Attr> attrs(present.begin(), present.end());
  const auto found =
      std::find_if(attrs.begin(), attrs.end(), [&](const Attr& attr) { return attr.key == key; });
  if (found != attrs.end()) {
    found->value = value;
  } else {
    attrs.push_back({key, value});
  }
  return with_attrs(b, s, attrs);
}

Applied with_attr_at(const Program& program, const Site& site, std::string_view key,
                     int64_t value) {
  IrBuilder b(program);
  return {b.finish(replace_at(b, site, with_attr(b, site.path.back(), key, value))), {}, {}};
}

Stmt without_attr(IrBuilder& b, Stmt s, std::string_view key) {
  const std::span<const Attr> present = attrs_of(s);
  std::vector<Attr> attrs;
  std::copy_if(present.begin(), present.end(), std::back_inserter(attrs),
               [&](const Attr& attr) { return attr.key != key; });
  return attrs.size() == present.size() ? s : with_attrs(b, s, attrs);
}

std::vector<Stmt> children_of(Stmt s) {
  if (const Seq* seq = s.as<Seq>()) return {seq->stmts.begin(), seq->stmts.end()};
  return {s};
}

}  // namespace prunerc::schedule
