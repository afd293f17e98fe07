#include "ir/lang/typing.h"

#include <algorithm>
#include <cmath>

namespace prunerc::lang {

using ir::DType;

namespace {

bool is_comparison(AstOp op) { return op >= AstOp::kEq && op <= AstOp::kGe; }
bool is_logical(AstOp op) { return op == AstOp::kAnd || op == AstOp::kOr; }

bool is_narrow(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16 || dtype == DType::kI8 ||
         dtype == DType::kU8;
}

std::string cast_text(DType dtype) { return fmt::format("{}(", ir::to_string(dtype)); }

}  // namespace

bool widens(DType from, DType to) {
  if (from == to) return true;
  switch (from) {
    case DType::kF16:
    case DType::kBF16: return to == DType::kF32 || to == DType::kF64;
    case DType::kF32: return to == DType::kF64;
    case DType::kI8:
    case DType::kU8: return to == DType::kI32 || to == DType::kI64;
    case DType::kI32: return to == DType::kI64;
    default: return false;
  }
}

std::optional<DType> common_type(DType a, DType b) {
  if (widens(a, b)) return b;
  if (widens(b, a)) return a;
  for (const DType joined : {DType::kI32, DType::kF32}) {
    if (widens(a, joined) && widens(b, joined)) return joined;
  }
  return std::nullopt;
}

const Node* Typing::keep(Node node) {
  uint32_t height = 0;
  node.size = 1;
  for_each_child(node, [&](const Node* child) {
    node.size = std::min(node.size + child->size, 2 * kMaxNodes);
    height = std::max(height, child->depth);
    node.has_data = node.has_data || child->has_data;
  });
  node.depth = height + 1;
  if (node.size > kMaxNodes || node.depth > kMaxNodeDepth || nodes_.size() >= kMaxNodesOfOp) {
    if (!is_exhausted_) sink_.report<LangDiag::kExpansionTooLarge>(node.range, kMaxNodes);
    is_exhausted_ = true;
    return nullptr;
  }
  nodes_.push_back(std::move(node));
  return &nodes_.back();
}

const Node* Typing::int_constant(int64_t value, SourceRange range) {
  Node node;
  node.kind = NodeKind::kInt;
  node.type = {Type::Kind::kUntypedInt, {}};
  node.int_value = value;
  node.range = range;
  return keep(std::move(node));
}

const Node* Typing::float_constant(double value, SourceRange range) {
  Node node;
  node.kind = NodeKind::kFloat;
  node.type = {Type::Kind::kUntypedFloat, {}};
  node.float_value = value;
  node.range = range;
  return keep(std::move(node));
}

const Node* Typing::bool_constant(bool value, SourceRange range) {
  Node node;
  node.kind = NodeKind::kBool;
  node.type = Type::of(DType::kBool);
  node.int_value = value ? 1 : 0;
  node.range = range;
  return keep(std::move(node));
}

const Node* Typing::extreme(DType dtype, bool is_highest, SourceRange range) {
  Node node;
  node.type = Type::of(dtype);
  node.range = range;
  if (ir::is_float(dtype)) {
    node.kind = NodeKind::kFloat;
    node.float_value = is_highest ? ir::max_finite(dtype) : -ir::max_finite(dtype);
  } else {
    node.kind = ir::is_bool(dtype) ? NodeKind::kBool : NodeKind::kInt;
    node.int_value = is_highest ? ir::max_int(dtype) : ir::min_int(dtype);
  }
  return keep(std::move(node));
}

const Node* Typing::index(const IndexVar* index, SourceRange range) {
  Node node;
  node.kind = NodeKind::kIndex;
  node.type = Type::of(DType::kI64);
  node.index = index;
  node.range = range;
  return keep(std::move(node));
}

const Node* Typing::at(const Node* node, SourceRange range) {
  if (node == nullptr) return nullptr;
  Node copy = *node;
  copy.range = range;
  return keep(std::move(copy));
}

const Node* Typing::read(const Tensor* tensor, std::vector<const Node*> subscripts,
                         const Node* or_value, bool has_or, SourceRange range) {
  Node node;
  node.kind = NodeKind::kRead;
  node.tensor = tensor;
  node.type = Type::of(*tensor->dtype);
  node.range = range;
  node.has_data = true;
  for (const Node* subscript : subscripts) {
    if (subscript == nullptr) return nullptr;
    if (!subscript->type.is_int()) {
      SourceDiagnostic& diagnostic =
          sink_.report<LangDiag::kNeedsIntSubscript>(subscript->range, to_string(subscript->type));
      // `-e` takes a name that is no index for a scalar.
      if (subscript->kind == NodeKind::kRead && subscript->args.empty())
        diagnostic.message += fmt::format("; an index stands on the left or in 'sum[{}] ...'",
                                          subscript->tensor->name);
      return nullptr;
    }
    node.args.push_back(convert(subscript, DType::kI64));
    if (node.args.back() == nullptr) return nullptr;
  }
  if (has_or) {
    node.or_value = convert(or_value, *tensor->dtype);
    if (node.or_value == nullptr) return nullptr;
  }
  return keep(std::move(node));
}

bool Typing::require_number(const Node* node, std::string_view what) {
  if (!node->type.is_bool()) return true;
  sink_.report<LangDiag::kNeedsNumber>(node->range, what);
  return false;
}

const Node* Typing::condition(const Node* node, std::string_view what) {
  if (node == nullptr) return nullptr;
  if (node->type.is_bool()) return node;
  sink_.report<LangDiag::kNeedsBool>(node->range, what, to_string(node->type));
  return nullptr;
}

const Node* Typing::unary(const AstExpr& expr, const Node* operand) {
  if (operand == nullptr) return nullptr;
  Node node;
  node.kind = NodeKind::kUnary;
  node.op = expr.op;
  node.range = expr.range;
  if (expr.op == AstOp::kNot) {
    if (condition(operand, "the operand of '!'") == nullptr) return nullptr;
    if (operand->is_constant()) return bool_constant(operand->int_value == 0, expr.range);
    node.type = operand->type;
    node.args = {operand};
    return keep(std::move(node));
  }
  if (operand->type.is_bool()) {
    sink_.report<LangDiag::kBoolArithmetic>(expr.range, "-");
    return nullptr;
  }
  if (operand->is_constant()) {
    Node folded = *operand;
    folded.range = expr.range;
    folded.float_value = -operand->float_value;
    folded.from_int = false;
    if (operand->kind == NodeKind::kInt && !operand->type.is_typed() &&
        __builtin_sub_overflow(int64_t{0}, operand->int_value, &folded.int_value)) {
      sink_.report<LangDiag::kConstantOverflow>(expr.range);
      return nullptr;
    }
    if (operand->kind == NodeKind::kInt && operand->type.is_typed()) {
      const auto bits = uint64_t{0} - static_cast<uint64_t>(operand->int_value);
      folded.int_value = ir::wrap_to(operand->type.dtype, static_cast<int64_t>(bits));
    }
    return keep(std::move(folded));
  }
  node.type = operand->type;
  node.args = {operand};
  return keep(std::move(node));
}

bool Typing::check_quotient(const Node* node) {
  if (node->quotient == nullptr) return true;
  const AstExpr& division = *node->quotient;
  const AstExpr& lhs = *division.args[0];
  SourceDiagnostic& diagnostic = sink_.report<LangDiag::kInexactQuotient>(division.range);
  if (lhs.kind == AstKind::kInt && !lhs.parenthesized) {
    diagnostic.fix(end_of(lhs.range), ".0");
  } else {
    diagnostic.fix(start_of(lhs.range), "1.0*");
  }
  return false;
}

bool Typing::unify(std::vector<const Node*>& operands, Type& type, SourceRange range) {
  std::optional<DType> dtype;
  bool is_float = false;
  const Node* first = nullptr;
  for (const Node* operand : operands) {
    if (operand == nullptr) return false;
    is_float = is_float || operand->type.is_float();
    if (!operand->type.is_typed()) continue;
    const DType mine = operand->type.dtype;
    const std::optional<DType> joined = dtype ? common_type(*dtype, mine) : mine;
    if (!joined) {
      // The integer side is the one to cast; an index in a float context has its own rule.
      const Node* other = ir::is_float(mine) ? first : operand;
      const DType target = ir::is_float(mine) ? mine : *dtype;
      if (ir::is_float(target) && other->type.is_int() && !other->has_data) {
        sink_.report<LangDiag::kIndexInFloat>(other->range, ir::to_string(target))
            .fix(start_of(other->range), cast_text(target))
            .fix(end_of(other->range), ")");
      } else {
        SourceDiagnostic& diagnostic = sink_.report<LangDiag::kNoCommonType>(
            range, ir::to_string(*dtype), ir::to_string(mine));
        diagnostic.note(first->range, fmt::format("this has type {}", ir::to_string(*dtype)));
        diagnostic.note(operand->range, fmt::format("this has type {}", ir::to_string(mine)));
        if (!ir::is_bool(target)) {
          diagnostic.fix(start_of(other->range), cast_text(target)).fix(end_of(other->range), ")");
        }
      }
      return false;
    }
    dtype = joined;
    if (first == nullptr) first = operand;
  }
  if (!dtype) {
    type = {is_float ? Type::Kind::kUntypedFloat : Type::Kind::kUntypedInt, {}};
    return true;
  }
  if (body_type_ && widens(*dtype, *body_type_)) dtype = body_type_;
  type = Type::of(*dtype);
  for (const Node*& operand : operands) {
    operand = convert(operand, *dtype);
    if (operand == nullptr) return false;
  }
  return true;
}

const Node* Typing::binary(const AstExpr& expr, const Node* lhs, const Node* rhs) {
  if (lhs == nullptr || rhs == nullptr) return nullptr;
  if (is_logical(expr.op)) return logical(expr, lhs, rhs);
  if (is_comparison(expr.op)) return compare(expr, lhs, rhs);
  if (lhs->type.is_bool() || rhs->type.is_bool()) {
    sink_.report<LangDiag::kBoolArithmetic>(expr.name.range, to_string(expr.op))
        .note(lhs->type.is_bool() ? lhs->range : rhs->range, "this has type bool");
    return nullptr;
  }
  if (lhs->is_constant() && rhs->is_constant() && !lhs->type.is_typed() && !rhs->type.is_typed()) {
    return fold(expr, lhs, rhs);
  }
  std::vector<const Node*> operands = {lhs, rhs};
  Node node;
  node.kind = NodeKind::kBinary;
  node.op = expr.op;
  node.range = expr.range;
  if (!unify(operands, node.type, expr.range)) return nullptr;
  if (expr.op == AstOp::kMod && node.type.is_float()) {
    sink_.report<LangDiag::kRemainderOfFloat>(expr.name.range, to_string(node.type));
    return nullptr;
  }
  node.args = std::move(operands);
  return keep(std::move(node));
}

const Node* Typing::logical(const AstExpr& expr, const Node* lhs, const Node* rhs) {
  const std::string what = fmt::format("an operand of '{}'", to_string(expr.op));
  if (condition(lhs, what) == nullptr || condition(rhs, what) == nullptr) return nullptr;
  const bool is_and = expr.op == AstOp::kAnd;
  if (lhs->is_constant()) {
    return (lhs->int_value != 0) == is_and ? rhs : bool_constant(!is_and, expr.range);
  }
  if (rhs->is_constant() && (rhs->int_value != 0) == is_and) return lhs;
  Node node;
  node.kind = NodeKind::kBinary;
  node.op = expr.op;
  node.type = lhs->type;
  node.range = expr.range;
  node.args = {lhs, rhs};
  return keep(std::move(node));
}

const Node* Typing::compare(const AstExpr& expr, const Node* lhs, const Node* rhs) {
  const bool is_equality = expr.op == AstOp::kEq || expr.op == AstOp::kNe;
  if (!(is_equality && lhs->type.is_bool() && rhs->type.is_bool())) {
    const std::string what = fmt::format("'{}'", to_string(expr.op));
    if (!require_number(lhs, what) || !require_number(rhs, what)) return nullptr;
  }
  if (lhs->is_constant() && rhs->is_constant() && !lhs->type.is_typed() && !rhs->type.is_typed()) {
    return fold(expr, lhs, rhs);
  }
  std::vector<const Node*> operands = {lhs, rhs};
  Type type;
  if (!unify(operands, type, expr.range)) return nullptr;
  Node node;
  node.kind = NodeKind::kBinary;
  node.op = expr.op;
  node.type = Type::of(DType::kBool);
  node.range = expr.range;
  node.args = {default_type(operands[0]), default_type(operands[1])};
  if (node.args[0] == nullptr || node.args[1] == nullptr) return nullptr;
  return keep(std::move(node));
}

const Node* Typing::choose(NodeKind kind, const Node* condition_node, const Node* on_true,
                           const Node* on_false, SourceRange range) {
  const char* what = kind == NodeKind::kIf ? "what follows 'if'" : "the first argument of 'select'";
  if (condition_node == nullptr || on_true == nullptr || on_false == nullptr) return nullptr;
  if (condition(condition_node, what) == nullptr) return nullptr;
  std::vector<const Node*> branches = {on_true, on_false};
  Node node;
  node.kind = kind;
  node.range = range;
  if (!unify(branches, node.type, range)) return nullptr;
  // A constant condition chooses at once, so that a branch for another parameter value needs no
  // proof.
  if (condition_node->is_constant())
    return as_common(branches[condition_node->int_value != 0 ? 0 : 1], node.type);
  node.args = {condition_node, branches[0], branches[1]};
  return keep(std::move(node));
}

const Node* Typing::reduce(const AstExpr& expr, std::optional<DType> accumulator,
                           std::vector<const IndexVar*> indices, const Node* condition_node,
                           const Node* body) {
  if (body == nullptr) return nullptr;
  const Reducer reducer = expr.reducer;
  const std::string_view name = to_string(reducer);
  const bool is_bool = reducer == Reducer::kAny || reducer == Reducer::kAll;
  const bool is_position = reducer == Reducer::kArgMax || reducer == Reducer::kArgMin;
  const bool is_arithmetic = reducer == Reducer::kSum || reducer == Reducer::kProd;
  if (is_bool && condition(body, fmt::format("the body of '{}'", name)) == nullptr) return nullptr;
  if (!is_bool && body->type.is_bool()) {
    if (is_arithmetic) {
      sink_.report<LangDiag::kBoolArithmetic>(body->range, name);
      return nullptr;
    }
    if (!require_number(body, fmt::format("'{}'", name))) return nullptr;
  }
  if (accumulator) body = widen_body(body, *accumulator);
  if (body != nullptr && is_position) body = default_type(body);
  if (body == nullptr) return nullptr;
  Node node;
  node.kind = NodeKind::kReduce;
  node.reducer = reducer;
  node.range = expr.range;
  node.type = is_position ? Type::of(DType::kI64) : body->type;
  node.accumulator = body->type.dtype;
  node.indices = std::move(indices);
  node.condition = condition_node;
  node.args = {body};
  if (!accumulator && is_arithmetic && body->type.is_typed() && is_narrow(body->type.dtype)) {
    const DType wide = ir::is_float(body->type.dtype) ? DType::kF32 : DType::kI32;
    sink_
        .report<LangDiag::kNarrowAccumulator>(expr.name.range, name,
                                              ir::to_string(body->type.dtype))
        .fix(end_of(expr.name.range), fmt::format(":{}", ir::to_string(wide)));
    return nullptr;
  }
  return keep(std::move(node));
}

}  // namespace prunerc::lang
