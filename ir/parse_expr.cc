// Expressions of program text: precedence climbing, with the height of each tree bounded.
#include "ir/parser_impl.h"

#include <charconv>
#include <cmath>
#include <optional>

namespace prunerc::ir {
namespace {

struct Operator {
  std::string_view text;
  ExprKind kind;
  bool swapped = false;
};

std::optional<Operator> operator_at(int level, const Token& token) {
  static const std::vector<std::vector<Operator>> kLevels = {
      {{"||", ExprKind::kOr}},
      {{"&&", ExprKind::kAnd}},
      {{"==", ExprKind::kEq},
       {"!=", ExprKind::kNe},
       {"<", ExprKind::kLt},
       {"<=", ExprKind::kLe},
       {">", ExprKind::kLt, true},
       {">=", ExprKind::kLe, true}},
      {{"+", ExprKind::kAdd}, {"-", ExprKind::kSub}},
      {{"*", ExprKind::kMul},
       {"/", ExprKind::kDiv},
       {"//", ExprKind::kFloorDiv},
       {"%", ExprKind::kFloorMod}},
  };
  if (token.kind != TokenKind::kSymbol) return std::nullopt;
  for (const Operator& op : kLevels[static_cast<std::size_t>(level)]) {
    if (op.text == token.text) return op;
  }
  return std::nullopt;
}
constexpr int kNumLevels = 5;
constexpr int kCompareLevel = 2;

}  // namespace

Result<Expr> Parser::expr(DType type, const char* what) {
  const Locus locus = peek().locus;
  PRUNERC_TRY(const Parsed p, binary(0));
  if (p.expr.dtype() != type) {
    return error_at(locus, Diag::kTypeMismatch, what, std::string(to_string(type)),
                    std::string(to_string(p.expr.dtype())));
  }
  return p.expr;
}

Result<Parsed> Parser::combine(ExprKind kind, Parsed lhs, Parsed rhs, Locus locus) {
  const Result<DType> type = binary_type(kind, lhs.expr.dtype(), rhs.expr.dtype());
  if (!type.ok()) {
    ErrorData data = type.error().data();
    data.locus = locus;
    return Error(std::move(data));
  }
  const int height = 1 + std::max(lhs.height, rhs.height);
  if (height > kMaxExprHeight) {
    return error_at(locus, Diag::kParseTooDeep, int64_t{kMaxExprHeight});
  }
  return Parsed{b_.binary(kind, lhs.expr, rhs.expr), height};
}

Result<Parsed> Parser::binary(int level) {
  if (level == kNumLevels) return unary();
  PRUNERC_TRY(Parsed lhs, binary(level + 1));
  while (const std::optional<Operator> op = operator_at(level, peek())) {
    const Locus locus = take().locus;
    PRUNERC_TRY(const Parsed rhs, binary(level + 1));
    PRUNERC_TRY(
        lhs, op->swapped ? combine(op->kind, rhs, lhs, locus) : combine(op->kind, lhs, rhs, locus));
    if (level == kCompareLevel) break;  // comparisons do not chain
  }
  return lhs;
}

Result<Parsed> Parser::unary() {
  if (++expr_depth_ > kMaxExprNesting) {
    return error_at(peek().locus, Diag::kParseTooDeep, int64_t{kMaxExprNesting});
  }
  const Locus locus = peek().locus;
  Parsed result;
  if (accept("!")) {
    PRUNERC_TRY(const Parsed operand, unary());
    if (!is_bool(operand.expr.dtype())) {
      return error_at(locus, Diag::kTypeUnexpected, "!",
                      std::string(to_string(operand.expr.dtype())));
    }
    result = {b_.logical_not(operand.expr), operand.height + 1};
  } else if (at("-") && peek(1).kind == TokenKind::kNumber) {
    take();
    PRUNERC_TRY(result, number(true));
  } else {
    PRUNERC_TRY(result, primary());
  }
  --expr_depth_;
  return result;
}

Result<Parsed> Parser::number(bool negative) {
  const Token& token = take();
  std::size_t suffix = token.text.find_first_of("fbiu");
  if (suffix == std::string_view::npos) suffix = token.text.size();
  const std::string digits = (negative ? "-" : "") + std::string(token.text.substr(0, suffix));
  const std::string_view type_name = token.text.substr(suffix);
  const std::optional<DType> type = type_name.empty() ? DType::kI64 : dtype_from_string(type_name);
  const Error bad =
      error_at(token.locus, Diag::kParseNumber, std::string(token.text.substr(0, 40)));
  if (!type || is_bool(*type)) return bad;
  const char* const end = digits.data() + digits.size();
  if (is_float(*type)) {
    double value = 0;
    const auto [stop, code] = std::from_chars(digits.data(), end, value);
    if (code != std::errc() || stop != end) return bad;
    return Parsed{b_.float_imm(value, *type)};
  }
  int64_t value = 0;
  const auto [stop, code] = std::from_chars(digits.data(), end, value);
  if (code != std::errc() || stop != end || wrap_to(*type, value) != value) return bad;
  return Parsed{b_.int_imm(value, *type)};
}

// After a type name: a special constant or a cast.
Result<Parsed> Parser::typed(DType type) {
  const Locus locus = peek().locus;
  if (accept(".")) {
    PRUNERC_TRY(const std::string_view special, name("inf, ninf or nan"));
    if (!is_float(type)) {
      return error_at(locus, Diag::kTypeUnexpected, std::string(special.substr(0, 40)),
                      std::string(to_string(type)));
    }
    if (special == "inf") return Parsed{b_.float_imm(HUGE_VAL, type)};
    if (special == "ninf") return Parsed{b_.float_imm(-HUGE_VAL, type)};
    if (special == "nan") return Parsed{b_.float_imm(std::nan(""), type)};
    return error_at(locus, Diag::kParseUnknownName, std::string(special.substr(0, 40)));
  }
  PRUNERC_TRY_VOID(expect("("));
  PRUNERC_TRY(const Parsed operand, binary(0));
  PRUNERC_TRY_VOID(expect(")"));
  return Parsed{b_.cast(type, operand.expr), operand.height + 1};
}

Result<std::vector<Parsed>> Parser::arguments(std::string_view close) {
  std::vector<Parsed> args;
  while (!accept(close)) {
    if (!args.empty()) PRUNERC_TRY_VOID(expect(","));
    PRUNERC_TRY(const Parsed arg, binary(0));
    args.push_back(arg);
  }
  return args;
}

Result<Parsed> Parser::function(std::string_view function_name, Locus locus) {
  PRUNERC_TRY_VOID(expect("("));
  PRUNERC_TRY(const std::vector<Parsed> args, arguments(")"));
  int height = 1;
  std::vector<Expr> exprs;
  for (const Parsed& a : args) {
    height = std::max(height, a.height + 1);
    exprs.push_back(a.expr);
  }
  const auto wrong_count = [&](int64_t wanted) {
    return error_at(locus, Diag::kParseExpected, std::to_string(wanted) + " arguments",
                    std::to_string(exprs.size()));
  };
  const auto types_differ = [&](std::size_t i, std::size_t j) {
    return error_at(locus, Diag::kTypeMismatch, std::string(function_name),
                    std::string(to_string(exprs[i].dtype())),
                    std::string(to_string(exprs[j].dtype())));
  };
  if (function_name == "min" || function_name == "max") {
    if (exprs.size() != 2) return wrong_count(2);
    const ExprKind kind = function_name == "min" ? ExprKind::kMin : ExprKind::kMax;
    return combine(kind, args[0], args[1], locus);
  }
  if (function_name == "select") {
    if (exprs.size() != 3) return wrong_count(3);
    if (!is_bool(exprs[0].dtype())) {
      return error_at(locus, Diag::kTypeMismatch, "a condition", "bool",
                      std::string(to_string(exprs[0].dtype())));
    }
    if (exprs[1].dtype() != exprs[2].dtype()) return types_differ(1, 2);
    return Parsed{b_.select(exprs[0], exprs[1], exprs[2]), height};
  }
  std::optional<Intrinsic> intrinsic;
#define PRUNERC_INTRINSIC(Name, text, num) \
  if (function_name == text) intrinsic = Intrinsic::k##Name;
#include "ir/intrinsic.def"
#undef PRUNERC_INTRINSIC
  if (!intrinsic) {
    return error_at(locus, Diag::kParseUnknownName, std::string(function_name.substr(0, 40)));
  }
  if (static_cast<int>(exprs.size()) != num_args(*intrinsic))
    return wrong_count(num_args(*intrinsic));
  const DType type = exprs[0].dtype();
  if (!is_float(type) && !(*intrinsic == Intrinsic::kAbs && is_int(type))) {
    return error_at(locus, Diag::kTypeUnexpected, std::string(function_name),
                    std::string(to_string(type)));
  }
  for (std::size_t i = 1; i < exprs.size(); ++i) {
    if (exprs[i].dtype() != type) return types_differ(0, i);
  }
  return Parsed{b_.call(*intrinsic, exprs), height};
}

Result<Parsed> Parser::primary() {
  const Token& token = peek();
  if (token.kind == TokenKind::kNumber) return number(false);
  if (accept("(")) {
    PRUNERC_TRY(const Parsed inner, binary(0));
    PRUNERC_TRY_VOID(expect(")"));
    return inner;
  }
  if (at("$")) {
    PRUNERC_TRY(const ParamId id, param_ref());
    return Parsed{b_.param(id)};
  }
  if (token.kind != TokenKind::kName) return expected("an expression");
  if (accept("true")) return Parsed{b_.bool_imm(true)};
  if (accept("false")) return Parsed{b_.bool_imm(false)};
  if (const std::optional<DType> type = dtype_from_string(token.text)) {
    take();
    return typed(*type);
  }
  if (peek(1).text == "(") {
    take();
    return function(token.text, token.locus);
  }
  if (peek(1).text == "[") {
    PRUNERC_TRY(const BufferId id, buffer_ref());
    take();
    int height = 2;
    PRUNERC_TRY(const std::vector<Expr> at_indices, indices(id, token.locus, &height));
    return Parsed{b_.load(id, at_indices), height};
  }
  if (const Var* v = find_var(token.text)) {
    take();
    return Parsed{v};
  }
  return error_at(token.locus, Diag::kParseUnknownName, std::string(token.text.substr(0, 40)));
}

const Var* Parser::find_var(std::string_view var_name) const {
  for (auto it = scope_.rbegin(); it != scope_.rend(); ++it) {
    if (it->first == var_name) return it->second;
  }
  return nullptr;
}

Result<BufferId> Parser::buffer_ref() {
  const auto found = buffers_.find(peek().text);
  if (peek().kind != TokenKind::kName) return expected("a buffer name");
  if (found == buffers_.end()) {
    return error_at(peek().locus, Diag::kParseUnknownName, std::string(peek().text.substr(0, 40)));
  }
  take();
  return found->second;
}

// The indices of a load or store, after "[".
Result<std::vector<Expr>> Parser::indices(BufferId id, Locus locus, int* height) {
  PRUNERC_TRY(const std::vector<Parsed> args, arguments("]"));
  const Buffer& buffer = b_.buffer(id);
  if (args.size() != buffer.shape.size()) {
    return error_at(locus, Diag::kVerifyRank, std::string(buffer.name),
                    static_cast<int64_t>(buffer.shape.size()), static_cast<int64_t>(args.size()));
  }
  std::vector<Expr> found;
  for (const Parsed& a : args) {
    if (a.expr.dtype() != DType::kI64) {
      return error_at(locus, Diag::kTypeMismatch, "an index", "i64",
                      std::string(to_string(a.expr.dtype())));
    }
    found.push_back(a.expr);
    *height = std::max(*height, a.height + 1);
  }
  if (*height > kMaxExprHeight) {
    return error_at(locus, Diag::kParseTooDeep, int64_t{kMaxExprHeight});
  }
  return found;
}

}  // namespace prunerc::ir
