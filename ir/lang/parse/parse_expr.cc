// Expressions of the operator language: precedence climbing over the binary operators, one function
// per primary form.

#include "ir/lang/parse/parser_impl.h"

#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <string>

namespace prunerc::lang {

using Kind = TokenKind;

namespace {

struct BinaryOperator {
  Kind token;
  AstOp op;
  int precedence;
};

constexpr int kComparison = 3;
constexpr int kAdditive = 4;
constexpr BinaryOperator kBinaryOperators[] = {
    {Kind::kOr, AstOp::kOr, 1},
    {Kind::kAnd, AstOp::kAnd, 2},
    {Kind::kEqual, AstOp::kEq, kComparison},
    {Kind::kNotEqual, AstOp::kNe, kComparison},
    {Kind::kLess, AstOp::kLt, kComparison},
    {Kind::kLessEqual, AstOp::kLe, kComparison},
    {Kind::kGreater, AstOp::kGt, kComparison},
    {Kind::kGreaterEqual, AstOp::kGe, kComparison},
    {Kind::kPlus, AstOp::kAdd, kAdditive},
    {Kind::kMinus, AstOp::kSub, kAdditive},
    {Kind::kStar, AstOp::kMul, 5},
    {Kind::kSlash, AstOp::kDiv, 5},
    {Kind::kPercent, AstOp::kMod, 5},
};

const BinaryOperator* find_operator(Kind token) {
  for (const BinaryOperator& row : kBinaryOperators) {
    if (row.token == token) return &row;
  }
  return nullptr;
}

constexpr std::string_view kReducerNames[] = {"sum", "prod", "max",    "min",
                                              "any", "all",  "argmax", "argmin"};
constexpr std::string_view kOpNames[] = {
    "-", "!", "+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||"};

}  // namespace

std::string_view to_string(AstOp op) { return kOpNames[static_cast<size_t>(op)]; }
std::string_view to_string(Reducer reducer) { return kReducerNames[static_cast<size_t>(reducer)]; }

std::optional<Reducer> reducer_from_string(std::string_view name) {
  for (size_t i = 0; i < std::size(kReducerNames); ++i) {
    if (kReducerNames[i] == name) return static_cast<Reducer>(i);
  }
  return std::nullopt;
}

SourceRange Parser::range_since(uint32_t begin) const {
  const SourceRange last = tokens_[at_ > 0 ? at_ - 1 : 0].range;
  return {last.file, begin, last.end > begin ? last.end : begin};
}

const AstExpr* Parser::keep(AstExpr expr) {
  uint32_t height = 0;
  const auto include = [&](const AstExpr* child) {
    if (child != nullptr && child->depth > height) height = child->depth;
  };
  for (const AstExpr* arg : expr.args) include(arg);
  include(expr.or_value);
  include(expr.condition);
  for (const AstIndex& index : expr.indices) {
    include(index.begin);
    include(index.end);
  }
  expr.depth = height + 1;
  if (expr.depth > kMaxExprDepth) {
    sink_.report<LangDiag::kTooDeep>(expr.name.range.end > 0 ? expr.name.range : expr.range,
                                     kMaxExprDepth);
    return nullptr;
  }
  file_.exprs.push_back(std::move(expr));
  return &file_.exprs.back();
}

const AstExpr* Parser::parse_expr() {
  if (at(Kind::kIf)) return parse_if();
  return parse_binary(1);
}

const AstExpr* Parser::parse_sum() { return parse_binary(kAdditive); }

const AstExpr* Parser::parse_if() {
  if (depth_ >= kMaxExprDepth) {
    sink_.report<LangDiag::kTooDeep>(current().range, kMaxExprDepth);
    return nullptr;
  }
  ++depth_;
  AstExpr expr;
  expr.kind = AstKind::kIf;
  const uint32_t begin = take().range.begin;
  const Kind separators[] = {Kind::kThen, Kind::kElse};
  for (size_t i = 0; i < 3; ++i) {
    const AstExpr* arg = parse_expr();
    if (arg == nullptr || (i < 2 && !expect(separators[i]))) {
      --depth_;
      return nullptr;
    }
    expr.args.push_back(arg);
  }
  --depth_;
  expr.range = range_since(begin);
  return keep(std::move(expr));
}

const AstExpr* Parser::parse_binary(int min_precedence) {
  const AstExpr* lhs = parse_unary();
  while (lhs != nullptr) {
    const BinaryOperator* row = find_operator(current().kind);
    if (row == nullptr || row->precedence < min_precedence) return lhs;
    const bool chains = row->precedence == kComparison && lhs->kind == AstKind::kBinary &&
                        lhs->op >= AstOp::kEq && lhs->op <= AstOp::kGe;
    // A parenthesised comparison is a value of its own: (a < b) == c.
    if (chains && !lhs->parenthesized) {
      sink_.report<LangDiag::kChainedComparison>(current().range)
          .note(lhs->range, "the first comparison");
      return nullptr;
    }
    const Token op = take();
    const AstExpr* rhs = parse_binary(row->precedence + 1);
    if (rhs == nullptr) return nullptr;
    AstExpr expr;
    expr.kind = AstKind::kBinary;
    expr.op = row->op;
    expr.name = {op.text, op.range};
    expr.range = join(lhs->range, rhs->range);
    expr.args = {lhs, rhs};
    lhs = keep(std::move(expr));
  }
  return nullptr;
}

const AstExpr* Parser::parse_unary() {
  if (depth_ >= kMaxExprDepth) {
    sink_.report<LangDiag::kTooDeep>(current().range, kMaxExprDepth);
    return nullptr;
  }
  if (!at(Kind::kMinus) && !at(Kind::kNot)) return parse_operand();
  const Token op = take();
  ++depth_;
  const AstExpr* operand = parse_unary();
  --depth_;
  if (operand == nullptr) return nullptr;
  AstExpr expr;
  expr.kind = AstKind::kUnary;
  expr.op = op.kind == Kind::kMinus ? AstOp::kNeg : AstOp::kNot;
  expr.name = {op.text, op.range};
  expr.range = join(op.range, operand->range);
  expr.args = {operand};
  return keep(std::move(expr));
}

const AstExpr* Parser::parse_operand() {
  const AstExpr* operand = parse_primary();
  const bool is_base = operand != nullptr && at_pair(Kind::kStar, Kind::kStar);
  return is_base ? refuse_power(*operand) : operand;
}

const AstExpr* Parser::parse_primary() {
  const Token& token = current();
  switch (token.kind) {
    case Kind::kInt:
    case Kind::kFloat: return parse_number();
    case Kind::kTrue:
    case Kind::kFalse:
    case Kind::kInf: {
      AstExpr expr;
      expr.kind = token.kind == Kind::kInf ? AstKind::kInf : AstKind::kBool;
      expr.bool_value = token.kind == Kind::kTrue;
      expr.range = take().range;
      return keep(std::move(expr));
    }
    case Kind::kLowest:
    case Kind::kHighest: return parse_extreme();
    case Kind::kDtype: return parse_cast();
    case Kind::kName:
    case Kind::kBuiltin: return parse_name_expr();
    case Kind::kReducer: return parse_reduction();
    case Kind::kLeftParen: return parse_paren();
    default: report_expected("an expression"); return nullptr;
  }
}

const AstExpr* Parser::parse_paren() {
  const uint32_t begin = take().range.begin;
  ++depth_;
  const AstExpr* inner = parse_expr();
  --depth_;
  if (inner == nullptr || !expect(Kind::kRightParen)) return nullptr;
  // The parentheses belong to the range, so that carets and fix-its cover them.
  AstExpr copy = *inner;
  copy.range = range_since(begin);
  copy.parenthesized = true;
  file_.exprs.push_back(std::move(copy));
  return &file_.exprs.back();
}

const AstExpr* Parser::parse_number() {
  const Token token = take();
  AstExpr expr;
  expr.range = token.range;
  if (token.kind == Kind::kInt) {
    expr.kind = AstKind::kInt;
    size_t digits = 0;  // a malformed suffix was reported by the lexer
    while (digits < token.text.size() && token.text[digits] >= '0' && token.text[digits] <= '9')
      ++digits;
    const char* begin = token.text.data();
    if (std::from_chars(begin, begin + digits, expr.int_value).ec != std::errc()) {
      constexpr size_t kShown = 40;
      sink_.report<LangDiag::kIntegerTooLarge>(token.range, token.text.substr(0, kShown));
      return nullptr;
    }
    return keep(std::move(expr));
  }
  expr.kind = AstKind::kFloat;
  const char* begin = token.text.data();
  const auto parsed = std::from_chars(begin, begin + token.text.size(), expr.float_value);
  // Out of range covers underflow as well, which rounds to zero.
  if (parsed.ec == std::errc::result_out_of_range) {
    expr.float_value = std::strtod(std::string(token.text).c_str(), nullptr);
    if (std::isinf(expr.float_value)) {
      constexpr size_t kShown = 40;
      sink_.report<LangDiag::kFloatTooLarge>(token.range, token.text.substr(0, kShown));
      return nullptr;
    }
  }
  return keep(std::move(expr));
}

const AstExpr* Parser::parse_extreme() {
  AstExpr expr;
  expr.kind = AstKind::kExtreme;
  const Token word = take();
  expr.is_highest = word.kind == Kind::kHighest;
  if (!expect(Kind::kLeftParen)) return nullptr;
  expr.type = parse_type();
  if (!expr.type || !expect(Kind::kRightParen)) return nullptr;
  expr.range = range_since(word.range.begin);
  return keep(std::move(expr));
}

const AstExpr* Parser::parse_cast() {
  const uint32_t begin = current().range.begin;
  AstExpr expr;
  expr.kind = AstKind::kCast;
  expr.type = parse_type();
  if (!expect(Kind::kLeftParen)) return nullptr;
  ++depth_;
  const AstExpr* operand = parse_expr();
  --depth_;
  if (operand == nullptr || !expect(Kind::kRightParen)) return nullptr;
  expr.args = {operand};
  expr.range = range_since(begin);
  return keep(std::move(expr));
}

const AstExpr* Parser::parse_name_expr() {
  const Token token = take();
  const AstName name = {token.text, token.range};
  if (at(Kind::kLeftBracket) && token.kind == Kind::kName) return parse_read(name);
  if (at(Kind::kLeftParen)) return parse_call(name);
  if (token.kind == Kind::kBuiltin) {
    report_expected(describe(Kind::kLeftParen));
    return nullptr;
  }
  AstExpr expr;
  expr.kind = AstKind::kName;
  expr.name = name;
  expr.range = name.range;
  return keep(std::move(expr));
}

const AstExpr* Parser::parse_read(AstName name) {
  take();
  AstExpr expr;
  expr.kind = AstKind::kRead;
  expr.name = name;
  if (!parse_args(Kind::kRightBracket, expr.args)) return nullptr;
  if (accept(Kind::kOrElse)) {
    ++depth_;
    expr.or_value = parse_unary();
    --depth_;
    if (expr.or_value == nullptr) return nullptr;
  }
  expr.range = range_since(name.range.begin);
  return keep(std::move(expr));
}

const AstExpr* Parser::parse_call(AstName name) {
  take();
  AstExpr expr;
  expr.kind = AstKind::kCall;
  expr.name = name;
  if (!parse_args(Kind::kRightParen, expr.args)) return nullptr;
  expr.range = range_since(name.range.begin);
  return keep(std::move(expr));
}

bool Parser::parse_args(Kind close, std::vector<const AstExpr*>& args) {
  ++depth_;
  bool ok = true;
  do {
    const AstExpr* arg = close == Kind::kRightBracket ? parse_sum() : parse_expr();
    ok = arg != nullptr;
    args.push_back(arg);
    ok = ok && check_count(args.size(), arg->range);
  } while (ok && accept(Kind::kComma));
  --depth_;
  return ok && expect(close);
}

const AstExpr* Parser::parse_reduction() {
  const Token word = take();
  if (at(Kind::kLeftParen)) {
    if (word.text == "max" || word.text == "min") return parse_call({word.text, word.range});
    sink_.report<LangDiag::kReducerNeedsBrackets>(word.range, word.text, word.text);
    return nullptr;
  }
  AstExpr expr;
  expr.kind = AstKind::kReduce;
  expr.name = {word.text, word.range};
  expr.reducer = *reducer_from_string(word.text);
  if (accept(Kind::kColon)) {
    expr.type = parse_type();
    if (!expr.type) return nullptr;
  }
  if (!expect(Kind::kLeftBracket)) return nullptr;
  ++depth_;
  bool ok = parse_indices(expr.indices);
  if (ok && accept(Kind::kBar)) {
    expr.condition = parse_expr();
    ok = expr.condition != nullptr;
  }
  ok = ok && expect(Kind::kRightBracket);
  const AstExpr* body = ok ? parse_product() : nullptr;
  --depth_;
  if (body == nullptr) return nullptr;
  expr.args = {body};
  expr.range = range_since(word.range.begin);
  return keep(std::move(expr));
}

const AstExpr* Parser::parse_product() {
  const AstExpr* product = parse_unary();
  while (product != nullptr && at(Kind::kStar)) {
    const Token op = take();
    const AstExpr* factor = parse_unary();
    if (factor == nullptr) return nullptr;
    AstExpr expr;
    expr.kind = AstKind::kBinary;
    expr.op = AstOp::kMul;
    expr.name = {op.text, op.range};
    expr.range = join(product->range, factor->range);
    expr.args = {product, factor};
    product = keep(std::move(expr));
  }
  return product;
}

}  // namespace prunerc::lang
