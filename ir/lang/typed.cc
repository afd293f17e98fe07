#include "ir/lang/typed.h"

namespace prunerc::lang {

std::string to_string(Type type) {
  switch (type.kind) {
    case Type::Kind::kTyped: return std::string(ir::to_string(type.dtype));
    case Type::Kind::kUntypedInt: return "a constant integer";
    case Type::Kind::kUntypedFloat: return "a constant float";
  }
  return "?";
}

bool structural_equal(const Node* a, const Node* b) {
  if (a == b) return true;
  if (a == nullptr || b == nullptr) return false;
  if (a->kind != b->kind || a->op != b->op || a->size != b->size || a->index != b->index ||
      a->tensor != b->tensor || a->int_value != b->int_value || a->type.kind != b->type.kind ||
      a->type.dtype != b->type.dtype || a->intrinsic != b->intrinsic || a->reducer != b->reducer ||
      a->indices != b->indices || a->args.size() != b->args.size()) {
    return false;
  }
  if (a->kind == NodeKind::kFloat && !(a->float_value == b->float_value)) return false;
  if (!structural_equal(a->or_value, b->or_value)) return false;
  if (!structural_equal(a->condition, b->condition)) return false;
  for (size_t i = 0; i < a->args.size(); ++i) {
    if (!structural_equal(a->args[i], b->args[i])) return false;
  }
  return true;
}

}  // namespace prunerc::lang
