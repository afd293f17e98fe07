#include "ir/parser.h"

#include "ir/parser_impl.h"

#include <charconv>

namespace prunerc::ir {

// --- tokens

Result<int64_t> Parser::integer(const char* what) {
  const bool negative = accept("-");
  if (peek().kind != TokenKind::kNumber) return expected(what);
  const Token& token = take();
  const std::string digits = (negative ? "-" : "") + std::string(token.text);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (code != std::errc() || end != digits.data() + digits.size()) {
    return error_at(token.locus, Diag::kParseNumber, std::string(token.text.substr(0, 40)));
  }
  return value;
}

// "@L12" after the sigil letter, or the fresh id if the program leaves it out.
Result<int32_t> Parser::id_number(std::string_view sigil, int32_t fresh) {
  if (!accept("@")) return fresh;
  const std::string_view text = peek().text;
  int32_t value = 0;
  const bool fits = peek().kind == TokenKind::kName && text.substr(0, 1) == sigil;
  const auto [end, code] = fits ? std::from_chars(text.data() + 1, text.data() + text.size(), value)
                                : std::from_chars_result{text.data(), std::errc::invalid_argument};
  if (code != std::errc() || end != text.data() + text.size() || value < 0 || value > 1 << 24) {
    return expected("an id such as @" + std::string(sigil) + "0");
  }
  take();
  return value;
}

void Parser::reserve_explicit_ids() {
  IdCounters used;
  for (std::size_t i = 1; i < tokens_.size(); ++i) {
    const std::string_view text = tokens_[i].text;
    if (tokens_[i - 1].text != "@" || text.size() < 2) continue;
    int32_t value = 0;
    const auto [end, code] = std::from_chars(text.data() + 1, text.data() + text.size(), value);
    if (code != std::errc() || value < 0 || value > 1 << 24) continue;
    static_cast<void>(end);
    if (text[0] == 'L') used.loop = std::max(used.loop, value + 1);
    if (text[0] == 'B') used.block = std::max(used.block, value + 1);
  }
  b_.reserve_ids(used);
}

// --- declarations

Result<Program> Parser::program() {
  reserve_explicit_ids();
  PRUNERC_TRY_VOID(expect("program"));
  PRUNERC_TRY_VOID(name("a program name"));
  PRUNERC_TRY_VOID(expect("("));
  PRUNERC_TRY_VOID(ports(BufferRole::kInput));
  PRUNERC_TRY_VOID(expect("->"));
  PRUNERC_TRY_VOID(expect("("));
  PRUNERC_TRY_VOID(ports(BufferRole::kOutput));
  PRUNERC_TRY_VOID(expect("{"));
  while (true) {
    if (accept("buffer")) {
      PRUNERC_TRY_VOID(port(BufferRole::kIntermediate, true));
      continue;
    }
    PRUNERC_TRY(const bool more, domain_line());
    if (!more) break;
  }
  PRUNERC_TRY(const Stmt root, body());
  if (peek().kind != TokenKind::kEnd) return expected("end of text");
  return b_.finish(root);
}

Result<void> Parser::ports(BufferRole role) {
  if (accept(")")) return {};
  while (true) {
    PRUNERC_TRY_VOID(port(role, false));
    if (accept(")")) return {};
    PRUNERC_TRY_VOID(expect(","));
  }
}

Result<void> Parser::port(BufferRole role, bool with_scope) {
  // A buffer may itself be called "const".
  const bool is_const =
      role == BufferRole::kInput && at("const") && peek(1).text != ":" && accept("const");
  const Locus locus = peek().locus;
  PRUNERC_TRY(const std::string_view buffer_name, name("a buffer name"));
  if (buffers_.count(buffer_name) > 0) {
    return error_at(locus, Diag::kParseDuplicate, std::string(buffer_name));
  }
  PRUNERC_TRY_VOID(expect(":"));
  const std::optional<DType> dtype = dtype_from_string(peek().text);
  if (!dtype) return expected("a type");
  take();
  std::vector<Expr> shape;
  if (accept("[")) {
    while (true) {
      PRUNERC_TRY(const Expr extent, expr(DType::kI64, "an extent"));
      shape.push_back(extent);
      if (accept("]")) break;
      PRUNERC_TRY_VOID(expect(","));
    }
  }
  Scope scope = Scope::kGlobal;
  if (with_scope) {
    const std::optional<Scope> found = scope_from_string(peek().text);
    if (!found) return expected("a storage scope");
    scope = *found;
    take();
  }
  const BufferId id = b_.add_buffer(buffer_name, *dtype, shape, scope, role);
  if (is_const) b_.mark_const(id);
  buffers_[buffer_name] = id;
  return {};
}

Result<ParamId> Parser::param_ref() {
  PRUNERC_TRY_VOID(expect("$"));
  const Locus locus = peek().locus;
  PRUNERC_TRY(const int64_t index, integer("a parameter number"));
  if (index < 0 || index >= num_params_) {
    return error_at(locus, Diag::kParseUnknownName, "$" + std::to_string(index));
  }
  return ParamId(static_cast<int32_t>(index));
}

Result<std::vector<ParamId>> Parser::param_list() {
  PRUNERC_TRY_VOID(expect("["));
  std::vector<ParamId> params;
  while (!accept("]")) {
    if (!params.empty()) PRUNERC_TRY_VOID(expect(","));
    PRUNERC_TRY(const ParamId id, param_ref());
    params.push_back(id);
  }
  return params;
}

// One line of the domain, if there is one here.
Result<bool> Parser::domain_line() {
  if (accept("param")) {
    PRUNERC_TRY(const std::string_view param_name, name("a parameter name"));
    b_.add_param(param_name);
    ++num_params_;
    return true;
  }
  if (accept("tiles")) {
    TileVector tiles;
    const Locus locus = peek().locus;
    PRUNERC_TRY(tiles.extent, integer("an extent"));
    if (tiles.extent < 1) return error_at(locus, Diag::kParseNumber, std::to_string(tiles.extent));
    if (!at("perfect") && !at("covering")) return expected("'perfect' or 'covering'");
    tiles.kind = take().text == "perfect" ? TileKind::kPerfect : TileKind::kCovering;
    PRUNERC_TRY(const std::vector<ParamId> params, param_list());
    tiles.params = params;
    PRUNERC_TRY_VOID(expect("max"));
    PRUNERC_TRY(tiles.max_innermost, integer("a number"));
    b_.add_tiles(tiles);
    return true;
  }
  if (accept("choice")) {
    PRUNERC_TRY(const ParamId param, param_ref());
    PRUNERC_TRY_VOID(expect("["));
    std::vector<int64_t> values;
    while (!accept("]")) {
      if (!values.empty()) PRUNERC_TRY_VOID(expect(","));
      PRUNERC_TRY(const int64_t value, integer("a value"));
      values.push_back(value);
    }
    b_.add_choice({param, values});
    return true;
  }
  if (accept("require")) {
    PRUNERC_TRY(const Expr constraint, expr(DType::kBool, "a constraint"));
    b_.add_constraint(constraint);
    return true;
  }
  return false;
}

Result<Program> parse(std::string_view text) {
  PRUNERC_TRY(std::vector<Token> tokens, tokenize(text));
  const std::string_view name = tokens.size() > 1 ? tokens[1].text : std::string_view();
  return Parser(std::move(tokens), name).program();
}

}  // namespace prunerc::ir
