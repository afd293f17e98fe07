// Implicit and explicit conversions, constant folding and the built-in functions of Typing.

#include "ir/int_math.h"
#include "ir/lang/typing.h"

#include <algorithm>
#include <cmath>
#include <iterator>

namespace prunerc::lang {

using ir::DType;

namespace {

double as_double(const Node* node) {
  return node->kind == NodeKind::kFloat ? node->float_value : static_cast<double>(node->int_value);
}

template <typename T>
bool compare_values(AstOp op, T a, T b) {
  switch (op) {
    case AstOp::kEq: return a == b;
    case AstOp::kNe: return a != b;
    case AstOp::kLt: return a < b;
    case AstOp::kLe: return a <= b;
    case AstOp::kGt: return a > b;
    default: return a >= b;
  }
}

std::string show(const Node* node) {
  return node->kind == NodeKind::kFloat ? fmt::format("{}", node->float_value)
                                        : fmt::format("{}", node->int_value);
}

struct Builtin {
  std::string_view name;
  ir::Intrinsic intrinsic;
  double (*fold)(double);  // null: not of one argument
};

const Builtin kFloatBuiltins[] = {
    {"exp", ir::Intrinsic::kExp, [](double x) { return std::exp(x); }},
    {"log", ir::Intrinsic::kLog, [](double x) { return std::log(x); }},
    {"sqrt", ir::Intrinsic::kSqrt, [](double x) { return std::sqrt(x); }},
    {"rsqrt", ir::Intrinsic::kRsqrt, [](double x) { return 1.0 / std::sqrt(x); }},
    {"tanh", ir::Intrinsic::kTanh, [](double x) { return std::tanh(x); }},
    {"erf", ir::Intrinsic::kErf, [](double x) { return std::erf(x); }},
    {"sigmoid", ir::Intrinsic::kSigmoid, [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
    {"sin", ir::Intrinsic::kSin, [](double x) { return std::sin(x); }},
    {"cos", ir::Intrinsic::kCos, [](double x) { return std::cos(x); }},
    {"floor", ir::Intrinsic::kFloor, [](double x) { return std::floor(x); }},
    {"ceil", ir::Intrinsic::kCeil, [](double x) { return std::ceil(x); }},
    {"round", ir::Intrinsic::kRound, [](double x) { return std::nearbyint(x); }},
    {"abs", ir::Intrinsic::kAbs, [](double x) { return std::fabs(x); }},
    {"pow", ir::Intrinsic::kPow, nullptr},
    {"fma", ir::Intrinsic::kFma, nullptr},
};

const Builtin& find_builtin(std::string_view name) {
  const auto* row = std::find_if(std::begin(kFloatBuiltins), std::end(kFloatBuiltins),
                                 [&](const Builtin& b) { return b.name == name; });
  return row == std::end(kFloatBuiltins) ? kFloatBuiltins[0] : *row;
}

/// -1: two or more.
int expected_args(std::string_view name) {
  if (name == "max" || name == "min") return -1;
  if (name == "clamp" || name == "select") return 3;
  return ir::num_args(find_builtin(name).intrinsic);
}

}  // namespace

const Node* Typing::fold(const AstExpr& expr, const Node* lhs, const Node* rhs) {
  if (lhs->kind == NodeKind::kInt && rhs->kind == NodeKind::kInt) return fold_int(expr, lhs, rhs);
  if (!check_quotient(lhs) || !check_quotient(rhs)) return nullptr;
  return fold_float(expr, lhs, rhs);
}

const Node* Typing::fold_int(const AstExpr& expr, const Node* lhs, const Node* rhs) {
  const int64_t a = lhs->int_value;
  const int64_t b = rhs->int_value;
  int64_t value = 0;
  bool overflow = false;
  bool inexact = false;
  switch (expr.op) {
    case AstOp::kAdd: overflow = __builtin_add_overflow(a, b, &value); break;
    case AstOp::kSub: overflow = __builtin_sub_overflow(a, b, &value); break;
    case AstOp::kMul: overflow = __builtin_mul_overflow(a, b, &value); break;
    case AstOp::kDiv:
    case AstOp::kMod:
      if (b == 0) {
        sink_.report<LangDiag::kConstantDivByZero>(rhs->range, "");
        return nullptr;
      }
      if (b == -1) {  // INT64_MIN / -1 traps
        overflow = __builtin_sub_overflow(int64_t{0}, a, &value);
        if (expr.op == AstOp::kMod) {
          value = 0;
          overflow = false;
        }
        break;
      }
      value = ir::floor_div(a, b);
      inexact = expr.op == AstOp::kDiv && value * b != a;
      if (expr.op == AstOp::kMod) value = a - value * b;
      break;
    default: return bool_constant(compare_values(expr.op, a, b), expr.range);
  }
  if (overflow) {
    sink_.report<LangDiag::kConstantOverflow>(expr.range);
    return nullptr;
  }
  Node node;
  node.kind = NodeKind::kInt;
  node.type = {Type::Kind::kUntypedInt, {}};
  node.int_value = value;
  node.range = expr.range;
  node.quotient = inexact ? &expr : lhs->quotient != nullptr ? lhs->quotient : rhs->quotient;
  return keep(std::move(node));
}

const Node* Typing::fold_float(const AstExpr& expr, const Node* lhs, const Node* rhs) {
  const double a = as_double(lhs);
  const double b = as_double(rhs);
  switch (expr.op) {
    case AstOp::kAdd: return float_constant(a + b, expr.range);
    case AstOp::kSub: return float_constant(a - b, expr.range);
    case AstOp::kMul: return float_constant(a * b, expr.range);
    case AstOp::kDiv: return float_constant(a / b, expr.range);
    case AstOp::kMod:
      sink_.report<LangDiag::kRemainderOfFloat>(expr.name.range, "a constant float");
      return nullptr;
    default: return bool_constant(compare_values(expr.op, a, b), expr.range);
  }
}

const Node* Typing::constant_to(const Node* node, DType dtype) {
  Node typed = *node;
  typed.type = Type::of(dtype);
  typed.quotient = nullptr;
  if (ir::is_float(dtype)) {
    if (!check_quotient(node)) return nullptr;
    const double value = as_double(node);
    typed.kind = NodeKind::kFloat;
    // The exact value stays: a reduction's body may be evaluated in a wider type yet. Lowering
    // rounds.
    typed.float_value = value;
    typed.from_int = node->from_int || (node->kind == NodeKind::kInt && std::fabs(value) >= 0x1p53);
    if (!typed.from_int) typed.int_value = 0;
    if (std::isfinite(value) && std::isinf(ir::round_to(dtype, value))) {
      sink_.report<LangDiag::kConstantDoesNotFit>(node->range, show(node), ir::to_string(dtype));
      return nullptr;
    }
    return keep(std::move(typed));
  }
  if (node->kind == NodeKind::kFloat) {
    if (std::isinf(node->float_value)) {
      sink_.report<LangDiag::kInfIsFloat>(node->range, ir::to_string(dtype));
    } else {
      sink_.report<LangDiag::kConstantDoesNotFit>(node->range, show(node), ir::to_string(dtype));
    }
    return nullptr;
  }
  if (node->int_value < ir::min_int(dtype) || node->int_value > ir::max_int(dtype)) {
    sink_.report<LangDiag::kConstantDoesNotFit>(node->range, show(node), ir::to_string(dtype));
    return nullptr;
  }
  return keep(std::move(typed));
}

const Node* Typing::rebuild(const Node* node, std::vector<const Node*> args, Type type) {
  Node copy = *node;
  copy.args = std::move(args);
  copy.type = type;
  if (copy.kind == NodeKind::kReduce) copy.accumulator = type.dtype;
  return keep(std::move(copy));
}

const Node* Typing::push(const Node* node, DType dtype) {
  if (node->is_constant()) return constant_to(node, dtype);
  std::vector<const Node*> args;
  const bool has_condition = node->kind == NodeKind::kIf || node->kind == NodeKind::kSelect;
  for (size_t i = 0; i < node->args.size(); ++i) {
    const Node* arg = node->args[i];
    args.push_back(has_condition && i == 0 ? arg : convert(arg, dtype));
    if (args.back() == nullptr) return nullptr;
  }
  if (node->kind == NodeKind::kBinary && node->op == AstOp::kMod && ir::is_float(dtype)) {
    sink_.report<LangDiag::kRemainderOfFloat>(node->range, ir::to_string(dtype));
    return nullptr;
  }
  if (node->kind == NodeKind::kCall && node->intrinsic != ir::Intrinsic::kAbs &&
      !ir::is_float(dtype)) {
    sink_.report<LangDiag::kNeedsFloat>(node->range, ir::to_string(node->intrinsic),
                                        ir::to_string(dtype));
    return nullptr;
  }
  return rebuild(node, std::move(args), Type::of(dtype));
}

const Node* Typing::convert(const Node* node, DType dtype) {
  if (node == nullptr) return nullptr;
  if (!node->type.is_typed()) {
    if (ir::is_bool(dtype)) {
      sink_.report<LangDiag::kNoImplicitCast>(node->range, to_string(node->type), "bool")
          .fix(end_of(node->range), " != 0");
      return nullptr;
    }
    return push(node, dtype);
  }
  if (node->type.dtype == dtype) return node;
  if (!widens(node->type.dtype, dtype)) {
    const bool index_in_float = node->type.is_int() && ir::is_float(dtype) && !node->has_data;
    SourceDiagnostic& diagnostic =
        index_in_float ? sink_.report<LangDiag::kIndexInFloat>(node->range, ir::to_string(dtype))
                       : sink_.report<LangDiag::kNoImplicitCast>(node->range, to_string(node->type),
                                                                 ir::to_string(dtype));
    diagnostic.fix(start_of(node->range), fmt::format("{}(", ir::to_string(dtype)))
        .fix(end_of(node->range), ")");
    return nullptr;
  }
  Node cast_node;
  cast_node.kind = NodeKind::kCast;
  cast_node.type = Type::of(dtype);
  cast_node.range = node->range;
  cast_node.is_implicit = true;
  cast_node.args = {node};
  return keep(std::move(cast_node));
}

const Node* Typing::default_type(const Node* node) {
  if (node == nullptr || node->type.is_typed()) return node;
  return push(node, node->type.is_float() ? DType::kF64 : DType::kI64);
}

const Node* Typing::widen_body(const Node* node, DType dtype) {
  if (node == nullptr) return nullptr;
  if (!node->type.is_typed()) return convert(node, dtype);
  if (node->is_constant() && widens(node->type.dtype, dtype)) return constant_to(node, dtype);
  // A widening inside the body moves out to its operands: f16 products are f32 products if the body
  // is f32.
  if (node->kind == NodeKind::kCast && node->is_implicit) return widen_body(node->args[0], dtype);
  const bool is_arithmetic = node->kind == NodeKind::kUnary || node->kind == NodeKind::kBinary ||
                             node->kind == NodeKind::kMin || node->kind == NodeKind::kMax ||
                             node->kind == NodeKind::kCall;
  const bool is_choice = node->kind == NodeKind::kIf || node->kind == NodeKind::kSelect;
  if ((!is_arithmetic && !is_choice) || node->type.is_bool()) return convert(node, dtype);
  std::vector<const Node*> args;
  for (size_t i = 0; i < node->args.size(); ++i) {
    const bool is_condition = is_choice && i == 0;
    const Node* arg = node->args[i];
    args.push_back(is_condition ? arg : widen_body(arg, dtype));
    if (args.back() == nullptr) return nullptr;
  }
  return rebuild(node, std::move(args), Type::of(dtype));
}

const Node* Typing::cast(DType dtype, const Node* operand, SourceRange range) {
  if (operand == nullptr) return nullptr;
  if (operand->is_constant() && !operand->type.is_typed()) {
    Node node = *operand;
    node.range = range;
    node.type = Type::of(dtype);
    if (ir::is_float(dtype)) {
      if (!check_quotient(operand)) return nullptr;
      node.kind = NodeKind::kFloat;
      node.float_value = operand->kind == NodeKind::kInt ? ir::float_of(dtype, operand->int_value)
                                                         : ir::round_to(dtype, as_double(operand));
      return keep(std::move(node));
    }
    node.kind = ir::is_bool(dtype) ? NodeKind::kBool : NodeKind::kInt;
    node.quotient = nullptr;
    if (ir::is_bool(dtype)) {
      node.int_value = as_double(operand) != 0 ? 1 : 0;
    } else if (operand->kind == NodeKind::kFloat) {
      node.int_value = ir::saturate_to(dtype, operand->float_value);
    } else {
      node.int_value = ir::wrap_to(dtype, operand->int_value);
    }
    return keep(std::move(node));
  }
  operand = default_type(operand);
  if (operand == nullptr || operand->type.dtype == dtype) return at(operand, range);
  Node node;
  node.kind = NodeKind::kCast;
  node.type = Type::of(dtype);
  node.range = range;
  node.args = {operand};
  return keep(std::move(node));
}

// Of an integer and a float the chosen one is a float: max(3, 0.5) / 2 is 1.5.
const Node* Typing::as_common(const Node* chosen, Type type) {
  if (type.is_typed() || !type.is_float() || chosen->kind != NodeKind::kInt) return chosen;
  return check_quotient(chosen) ? float_constant(as_double(chosen), chosen->range) : nullptr;
}

const Node* Typing::minmax(NodeKind kind, const Node* lhs, const Node* rhs, SourceRange range) {
  std::vector<const Node*> operands = {lhs, rhs};
  Node node;
  node.kind = kind;
  node.range = range;
  if (!unify(operands, node.type, range)) return nullptr;
  if (operands[0]->is_constant() && operands[1]->is_constant() && !node.type.is_typed()) {
    const bool both_int =
        operands[0]->kind == NodeKind::kInt && operands[1]->kind == NodeKind::kInt;
    const auto wins = [&](auto a, auto b) { return kind == NodeKind::kMin ? a < b : a > b; };
    const bool is_first = both_int ? wins(operands[0]->int_value, operands[1]->int_value)
                                   : wins(as_double(operands[0]), as_double(operands[1]));
    return at(as_common(operands[is_first ? 0 : 1], node.type), range);
  }
  node.args = std::move(operands);
  return keep(std::move(node));
}

const Node* Typing::extremum(const AstExpr& expr, std::vector<const Node*> args) {
  const std::string what = fmt::format("'{}'", expr.name.text);
  for (const Node* arg : args) {
    if (!require_number(arg, what)) return nullptr;
  }
  Type type;
  if (!unify(args, type, expr.range)) return nullptr;
  if (expr.name.text == "clamp") {
    const Node* raised = minmax(NodeKind::kMax, args[0], args[1], expr.range);
    return raised == nullptr ? nullptr : minmax(NodeKind::kMin, raised, args[2], expr.range);
  }
  const NodeKind kind = expr.name.text == "max" ? NodeKind::kMax : NodeKind::kMin;
  const Node* result = args[0];
  for (size_t i = 1; i < args.size() && result != nullptr; ++i) {
    result = minmax(kind, result, args[i], expr.range);
  }
  return result;
}

const Node* Typing::call(const AstExpr& expr, std::vector<const Node*> args) {
  const std::string_view name = expr.name.text;
  const int expected = expected_args(name);
  if (expected >= 0 ? args.size() != static_cast<size_t>(expected) : args.size() < 2) {
    const std::string count =
        expected >= 0 ? counted(static_cast<size_t>(expected), "argument") : "at least 2 arguments";
    sink_.report<LangDiag::kWrongArgCount>(expr.range, name, count, args.size());
    return nullptr;
  }
  for (const Node* arg : args) {
    if (arg == nullptr) return nullptr;
  }
  if (name == "max" || name == "min" || name == "clamp") return extremum(expr, std::move(args));
  if (name == "select") return choose(NodeKind::kSelect, args[0], args[1], args[2], expr.range);
  return call_float(expr, std::move(args));
}

const Node* Typing::call_float(const AstExpr& expr, std::vector<const Node*> args) {
  const Builtin& builtin = find_builtin(expr.name.text);
  const bool takes_int = builtin.intrinsic == ir::Intrinsic::kAbs;
  Node node;
  node.kind = NodeKind::kCall;
  node.intrinsic = builtin.intrinsic;
  node.range = expr.range;
  bool constant = true;
  for (const Node* arg : args) {
    if (!require_number(arg, fmt::format("'{}'", builtin.name))) return nullptr;
    if (arg->type.is_typed() && arg->type.is_int() && !takes_int) {
      sink_.report<LangDiag::kNeedsFloat>(arg->range, builtin.name, to_string(arg->type))
          .fix(start_of(arg->range), "f32(")
          .fix(end_of(arg->range), ")");
      return nullptr;
    }
    constant = constant && arg->is_constant() && !arg->type.is_typed();
  }
  if (constant && takes_int && args[0]->kind == NodeKind::kInt) {
    if (args[0]->int_value >= 0) return at(args[0], expr.range);
    if (args[0]->int_value == INT64_MIN) {
      sink_.report<LangDiag::kConstantOverflow>(expr.range);
      return nullptr;
    }
    Node folded = *args[0];
    folded.int_value = -folded.int_value;
    folded.range = expr.range;
    return keep(std::move(folded));
  }
  if (constant) {
    for (const Node* arg : args) {
      if (!check_quotient(arg)) return nullptr;
    }
    if (builtin.fold != nullptr)
      return float_constant(builtin.fold(as_double(args[0])), expr.range);
    if (args.size() == 2) {
      return float_constant(std::pow(as_double(args[0]), as_double(args[1])), expr.range);
    }
    return float_constant(std::fma(as_double(args[0]), as_double(args[1]), as_double(args[2])),
                          expr.range);
  }
  if (!unify(args, node.type, expr.range)) return nullptr;
  if (!node.type.is_typed() && !takes_int) node.type.kind = Type::Kind::kUntypedFloat;
  node.args = std::move(args);
  return keep(std::move(node));
}

}  // namespace prunerc::lang
