// Calls of operators on whole tensors: statements of operators, where they are inlined, and of nets.
#include "ir/lang/parse/parser_impl.h"

namespace prunerc::lang {

using Kind = TokenKind;

// Whether what stands behind a target can only be a call, or looks like one of an operator:
// `a, b = ...`, `= f<P=1>(...)`, `= f(x, y)` with bare names.
bool Parser::at_call() const {
  if (at(Kind::kComma)) return true;
  if (!at(Kind::kAssign)) return false;
  if (ahead(2).kind == Kind::kLess) {
    return ahead(3).kind == Kind::kName && ahead(4).kind == Kind::kAssign;
  }
  if (next().kind != Kind::kName || ahead(2).kind != Kind::kLeftParen) return false;
  size_t i = 3;
  while (ahead(i).kind == Kind::kName && ahead(i + 1).kind == Kind::kComma) i += 2;
  if (ahead(i).kind == Kind::kName) ++i;
  return ahead(i).kind == Kind::kRightParen &&
         (ahead(i + 1).kind == Kind::kSemicolon || ahead(i + 1).text == "as");
}

// a, b = callee<P=1>(x, y) as label
bool Parser::parse_call_stmt(AstStmt& stmt) {
  const uint32_t begin = stmt.name.range.begin;
  while (accept(Kind::kComma)) {
    const std::optional<AstName> name = parse_name("a tensor");
    if (!name) return false;
    stmt.more_names.push_back(*name);
    if (!check_count(stmt.more_names.size() + 1, name->range)) return false;
  }
  if (!expect(Kind::kAssign)) return false;
  const size_t call_at = at_;
  AstCall call;
  if (!parse_call_of(call) || !parse_label(call.label)) return false;
  const size_t end = at_;
  stmt.range = range_since(begin);
  const bool is_name = classify_word(call.callee.text) == Kind::kName;
  if (is_name && call.bindings.empty() && !call.args.empty() && !call.label &&
      stmt.more_names.empty()) {
    // An fn of scalars is called in the same way.
    at_ = call_at;
    stmt.value = parse_expr();
    at_ = end;
  }
  stmt.call = std::move(call);
  return true;
}

// Operators are named by people and calls, never by expressions, so that one may be called 'argmax'.
std::optional<AstName> Parser::parse_operator_name() {
  if (!at(Kind::kReducer) && !at(Kind::kBuiltin)) return parse_name("an operator");
  const Token word = take();
  return AstName{word.text, word.range};
}

bool Parser::parse_call_of(AstCall& call) {
  const uint32_t begin = current().range.begin;
  const std::optional<AstName> callee = parse_operator_name();
  if (!callee) return false;
  call.callee = *callee;
  if (!parse_bindings(call.bindings) || !parse_call_args(call)) return false;
  call.range = range_since(begin);
  return true;
}

bool Parser::parse_call_args(AstCall& call) {
  if (!expect(Kind::kLeftParen)) return false;
  if (accept(Kind::kRightParen)) return true;
  do {
    const std::optional<AstName> arg = parse_name("a tensor");
    if (!arg) return false;
    call.args.push_back(*arg);
    if (!check_count(call.args.size(), arg->range)) return false;
  } while (accept(Kind::kComma));
  return expect(Kind::kRightParen);
}

bool Parser::parse_label(std::optional<AstName>& label) {
  if (!at(Kind::kName) || current().text != "as") return true;
  take();
  label = parse_name("a label");
  return label.has_value();
}

// <M=64, T=f16>, or nothing
bool Parser::parse_bindings(std::vector<AstBinding>& bindings) {
  if (!accept(Kind::kLess)) return true;
  do {
    const std::optional<AstName> name = parse_name("a parameter");
    if (!name || !expect(Kind::kAssign)) return false;
    AstBinding binding;
    binding.name = *name;
    const uint32_t begin = current().range.begin;
    if (at(Kind::kDtype) && next().kind != Kind::kLeftParen) {
      binding.type = parse_type();
    } else {
      binding.value = parse_sum();
      if (binding.value == nullptr) return false;
    }
    binding.range = range_since(begin);
    bindings.push_back(binding);
    if (!check_count(bindings.size(), name->range)) return false;
  } while (accept(Kind::kComma));
  return expect(Kind::kGreater);
}

}  // namespace prunerc::lang
