// Forms of other languages that people write out of habit, each refused with the form that works
// here.

#include "ir/lang/parse/parser_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace prunerc::lang {

using Kind = TokenKind;

namespace {

/// Names that stand alone in a subscript and are none of `left`: what a sum would run over.
void collect_summed(const AstExpr* expr, const std::vector<AstIndex>& left,
                    std::vector<std::string_view>& found) {
  if (expr == nullptr) return;
  for (const AstExpr* arg : expr->args) {
    collect_summed(arg, left, found);
    if (expr->kind != AstKind::kRead || arg->kind != AstKind::kName) continue;
    const std::string_view name = arg->name.text;
    const bool is_left = std::any_of(
        left.begin(), left.end(), [&](const AstIndex& index) { return index.name.text == name; });
    if (!is_left && std::find(found.begin(), found.end(), name) == found.end()) {
      found.push_back(name);
    }
  }
  collect_summed(expr->or_value, left, found);
}

}  // namespace

bool Parser::at_pair(Kind first, Kind second) const {
  return at(first) && next().kind == second && next().range.begin == current().range.end;
}

std::string_view Parser::text_of(SourceRange range) const {
  const Token& first = tokens_.front();
  const char* const file = first.text.data() - first.range.begin;
  return {file + range.begin, range.end - range.begin};
}

bool Parser::refuse_foreign_statement(AstStmt& stmt) {
  const std::string_view word = stmt.name.text;
  const bool is_loop = word == "for" || word == "while";
  if (!is_loop && word != "return") return false;
  if (!at(Kind::kName) && !at(Kind::kLeftParen)) return false;  // a tensor of that name
  sink_.report<LangDiag::kNoStatement>(
      stmt.name.range, word,
      is_loop ? "an assignment holds for all values of its indices, as in 'Y[i] = X[i] + 1;', and "
                "a sum runs over its own: 'Y[i] = sum[k] A[i,k];'"
              : "outputs are assigned by their names: 'Y[i] = X[i];'");
  // The body is passed over: its errors would follow from this one.
  int parens = 0;
  while (!at(Kind::kEnd) && !at(Kind::kLeftBrace) && (parens > 0 || !at(Kind::kSemicolon))) {
    const Kind kind = take().kind;
    parens += kind == Kind::kLeftParen ? 1 : kind == Kind::kRightParen ? -1 : 0;
  }
  int depth = 0;
  while (!at(Kind::kEnd)) {
    if (at(Kind::kLeftBrace)) ++depth;
    if (at(Kind::kRightBrace)) --depth;
    if (depth == 0) break;
    take();
  }
  if (at(Kind::kRightBrace)) take();
  stmt.name = {};
  return true;
}

bool Parser::refuse_left_subscript() {
  // Of several subscripts the first decides; the others are found by what is expected after them.
  const bool is_number =
      at(Kind::kInt) && (next().kind == Kind::kRightBracket || next().kind == Kind::kComma);
  const bool is_scatter = at(Kind::kName) && next().kind == Kind::kLeftBracket;
  bool is_sum = false;
  for (const Kind op : {Kind::kPlus, Kind::kMinus, Kind::kStar, Kind::kSlash, Kind::kPercent}) {
    is_sum = is_sum || ((at(Kind::kName) || at(Kind::kInt)) && next().kind == op);
  }
  if (!is_number && !is_scatter && !is_sum) return false;
  sink_.report<LangDiag::kLeftNotIndex>(
      current().range,
      is_scatter  ? "a scatter is a sum of what arrives: 'Y[j] = sum[i | idx[i] == j] X[i]'"
      : is_number ? "one element is a choice: 'Y[i] = if i == 0 then 1 else X[i]'"
                  : "shift what is read instead: 'Y[i] = X[i - 1] or 0'");
  return true;
}

bool Parser::refuse_compound(const AstStmt& stmt) {
  Kind op = Kind::kBad;
  for (const Kind kind : {Kind::kPlus, Kind::kMinus, Kind::kStar, Kind::kSlash}) {
    if (at_pair(kind, Kind::kAssign)) op = kind;
  }
  if (op == Kind::kBad) return false;
  const SourceRange left = range_since(stmt.name.range.begin);
  const Token first = take();
  const SourceRange both = join(first.range, take().range);
  const AstExpr* value = parse_expr();
  if (value == nullptr) return true;
  std::vector<std::string_view> summed;
  collect_summed(value, stmt.indices, summed);
  const bool is_sum = value->kind == AstKind::kBinary && value->op != AstOp::kMul;
  const bool is_bare = !value->parenthesized && (is_sum || value->kind == AstKind::kIf);
  const std::string body =
      fmt::format("{}{}{}", is_bare ? "(" : "", text_of(value->range), is_bare ? ")" : "");
  if (!summed.empty() && (op == Kind::kPlus || op == Kind::kStar)) {
    const std::string reduction =
        fmt::format("{}[{}]", op == Kind::kPlus ? "sum" : "prod", fmt::join(summed, ","));
    SourceDiagnostic& diagnostic = sink_.report<LangDiag::kNoCompound>(
        both, text_of(both), fmt::format("write '{} = {} {}'", text_of(left), reduction, body));
    diagnostic.fix(both, "= " + reduction);
    if (is_bare) diagnostic.fix(start_of(value->range), "(").fix(end_of(value->range), ")");
    return true;
  }
  const std::string_view subscripts = text_of(left).substr(stmt.name.text.size());
  sink_.report<LangDiag::kNoCompound>(
      both, text_of(both),
      fmt::format(
          "name the value before, 'let before{0} = ...;', and write '{1} = before{0} {2} {3}'",
          subscripts, text_of(left), first.text, body));
  return true;
}

const AstExpr* Parser::refuse_power(const AstExpr& base) {
  take();
  take();
  const AstExpr* exponent = parse_unary();
  if (exponent == nullptr) return nullptr;
  const std::string call =
      fmt::format("pow({}, {})", text_of(base.range), text_of(exponent->range));
  const SourceRange range = join(base.range, exponent->range);
  sink_.report<LangDiag::kNoPower>(range, call).fix(range, call);
  return nullptr;
}

}  // namespace prunerc::lang
