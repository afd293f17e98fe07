#include "ir/lang/parse/parser.h"

#include "ir/lang/module.h"
#include "ir/lang/parse/parser_impl.h"

namespace prunerc::lang {

using Kind = TokenKind;

bool Parser::accept(Kind kind) {
  if (!at(kind)) return false;
  take();
  return true;
}

bool Parser::expect(Kind kind) {
  if (accept(kind)) return true;
  report_expected(describe(kind));
  return false;
}

Token Parser::take() {
  const Token token = current();
  if (at_ + 1 < tokens_.size()) ++at_;
  return token;
}

void Parser::report_expected(std::string_view what) {
  if (at(Kind::kBad)) return;
  // A missing ';' is best shown where it belongs: after the token before. So is what the end of the
  // file lacks.
  const bool is_semicolon = what == describe(Kind::kSemicolon);
  const bool after_previous = (is_semicolon || at(Kind::kEnd)) && at_ > 0;
  const SourceRange where = after_previous ? end_of(tokens_[at_ - 1].range) : current().range;
  SourceDiagnostic& diagnostic =
      sink_.report<LangDiag::kExpected>(where, what, describe(current()));
  if (is_semicolon && after_previous) diagnostic.fix(where, ";");
}

void Parser::skip_statement() {
  while (!at(Kind::kEnd) && !at(Kind::kRightBrace) && !at(Kind::kLet)) {
    if (accept(Kind::kSemicolon)) return;
    take();
  }
}

bool Parser::starts_item() const {
  return at(Kind::kImport) || at(Kind::kConst) || at(Kind::kFn) || at(Kind::kOp) || at_net();
}

void Parser::skip_item() {
  while (!at(Kind::kEnd) && !starts_item()) {
    const Token token = take();
    if (token.kind == Kind::kSemicolon || token.kind == Kind::kRightBrace) return;
  }
}

// To the body of an operator or a net. A 'const' with a type is a port's.
void Parser::skip_header() {
  const auto at_port = [&] { return at(Kind::kConst) && ahead(2).kind == Kind::kColon; };
  while (!at(Kind::kEnd) && !at(Kind::kLeftBrace) && (at_port() || !starts_item())) take();
}

void Parser::parse_items() {
  while (!at(Kind::kEnd) && !sink_.is_full()) parse_item();
}

void Parser::parse_item() {
  bool ok = false;
  switch (current().kind) {
    case Kind::kImport: ok = parse_import(); break;
    case Kind::kConst: ok = parse_const(); break;
    case Kind::kFn: ok = parse_fn(); break;
    case Kind::kOp: parse_operator(); return;
    default:
      if (at_net()) {
        ok = parse_net();
        break;
      }
      if (!at(Kind::kBad)) {
        constexpr std::string_view kWanted = "'op', 'fn', 'const', 'import' or 'net'";
        SourceDiagnostic& diagnostic =
            sink_.report<LangDiag::kExpected>(current().range, kWanted, describe(current()));
        if (at(Kind::kName)) {
          diagnostic.message +=
              did_you_mean(current().text, {"op", "fn", "const", "import", "net"});
        }
      }
      take();
      break;
  }
  if (!ok) skip_item();
}

std::string_view Parser::unquoted(std::string_view text) {
  text.remove_prefix(1);
  if (!text.empty() && text.back() == '"') text.remove_suffix(1);
  return text;
}

bool Parser::parse_import() {
  const uint32_t begin = take().range.begin;
  const Token path = current();
  if (!expect(Kind::kString)) return false;
  file_.imports.push_back({unquoted(path.text), range_since(begin)});
  return expect(Kind::kSemicolon);
}

bool Parser::parse_const() {
  take();
  const std::optional<AstName> name = parse_name("a constant");
  if (!name || !expect(Kind::kAssign)) return false;
  const AstExpr* value = parse_sum();
  if (value == nullptr) return false;
  file_.consts.push_back({*name, value});
  return expect(Kind::kSemicolon);
}

bool Parser::parse_fn() {
  take();
  AstFn fn;
  const std::optional<AstName> name = parse_name("a function");
  if (!name || !expect(Kind::kLeftParen)) return false;
  fn.name = *name;
  do {
    const std::optional<AstName> param = parse_name("an argument");
    if (!param) return false;
    fn.params.push_back(*param);
    if (!check_count(fn.params.size(), param->range)) return false;
  } while (accept(Kind::kComma));
  if (!expect(Kind::kRightParen) || !expect(Kind::kAssign)) return false;
  fn.body = parse_expr();
  if (fn.body == nullptr) return false;
  file_.fns.push_back(std::move(fn));
  return expect(Kind::kSemicolon);
}

void Parser::parse_operator() {
  AstOperator op;
  op.range = take().range;
  op.has_header_errors = !parse_header(op);
  if (op.has_header_errors) {
    // The statements are read all the same, for the sake of their errors.
    skip_header();
    if (!at(Kind::kLeftBrace)) return;
  }
  if (!expect(Kind::kLeftBrace)) {
    skip_item();
  } else {
    parse_body(op);
  }
  op.range = range_since(op.range.begin);
  if (!op.name.text.empty()) file_.ops.push_back(std::move(op));
}

bool Parser::parse_header(AstOperator& op) {
  const std::optional<AstName> name = parse_operator_name();
  if (!name) return false;
  op.name = *name;
  return parse_signature(op);
}

bool Parser::parse_signature(AstOperator& op) {
  if (accept(Kind::kLess)) {
    do {
      AstParam param;
      if (!parse_param(param)) return false;
      op.params.push_back(std::move(param));
    } while (accept(Kind::kComma));
    if (!expect(Kind::kGreater)) return false;
  }
  if (!expect(Kind::kLeftParen)) return false;
  if (!at(Kind::kRightParen) && !parse_ports(op.inputs)) return false;
  if (!expect(Kind::kRightParen) || !expect(Kind::kArrow) || !expect(Kind::kLeftParen))
    return false;
  if (!parse_ports(op.outputs) || !expect(Kind::kRightParen)) return false;
  if (!accept(Kind::kWhere)) return true;
  do {
    AstWhere where;
    if (!parse_where(where)) return false;
    op.wheres.push_back(where);
  } while (accept(Kind::kComma));
  return true;
}

bool Parser::parse_param(AstParam& param) {
  const std::optional<AstName> name = parse_name("a parameter");
  if (!name) return false;
  param.name = *name;
  if (accept(Kind::kColon)) {
    if (accept(Kind::kIntKind)) {
      param.kind = ParamKind::kInt;
    } else if (accept(Kind::kFloatKind)) {
      param.kind = ParamKind::kFloat;
    } else if (accept(Kind::kTypeKind)) {
      param.kind = ParamKind::kType;
    } else {
      report_expected("'int', 'float' or 'type'");
      return false;
    }
  }
  return !accept(Kind::kAssign) || parse_param_default(param);
}

bool Parser::parse_param_default(AstParam& param) {
  if (param.kind == ParamKind::kType) {
    param.default_type = parse_type();
    return param.default_type.has_value();
  }
  param.default_value = parse_sum();
  return param.default_value != nullptr;
}

bool Parser::parse_ports(std::vector<AstPort>& ports) {
  do {
    AstPort port;
    if (!parse_port(port)) return false;
    ports.push_back(std::move(port));
  } while (accept(Kind::kComma));
  return true;
}

bool Parser::parse_port(AstPort& port) {
  port.is_const = accept(Kind::kConst);
  const std::optional<AstName> name = parse_name("a tensor");
  if (!name || !expect(Kind::kColon)) return false;
  port.name = *name;
  const std::optional<AstType> type = parse_type();
  if (!type) return false;
  port.type = *type;
  if (!accept(Kind::kLeftBracket)) return true;
  do {
    const AstExpr* extent = parse_sum();
    if (extent == nullptr) return false;
    port.shape.push_back(extent);
    if (!check_count(port.shape.size(), extent->range)) return false;
  } while (accept(Kind::kComma));
  return expect(Kind::kRightBracket);
}

bool Parser::parse_where(AstWhere& where) {
  if (next().kind == Kind::kAssign) {
    where.name = parse_name("a derived size");
    if (!where.name) return false;
    take();
    where.value = parse_sum();
  } else {
    where.value = parse_expr();
  }
  return where.value != nullptr;
}

void Parser::parse_body(AstOperator& op) {
  while (!at(Kind::kRightBrace) && !at(Kind::kEnd) && !sink_.is_full()) {
    AstStmt stmt;
    const size_t before = at_;
    const bool ok = parse_stmt(stmt) && !at(Kind::kBad);
    // The name is known even after an error, so that its readers cause no further ones.
    if (!ok) {
      stmt.value = nullptr;
      stmt.call.reset();
    }
    if (op.stmts.size() == kMaxStatements && !op.has_header_errors) {
      sink_.report<LangDiag::kTooManyStatements>(stmt.name.range, "an operator", kMaxStatements);
      op.has_header_errors = true;
    }
    const bool has_room = op.stmts.size() < kMaxStatements;
    if (!stmt.name.text.empty() && has_room) op.stmts.push_back(std::move(stmt));
    if (ok && expect(Kind::kSemicolon)) continue;
    op.has_body_errors = true;
    if (!ok && at_ > before && tokens_[at_ - 1].kind == Kind::kRightBrace) continue;  // a loop
    if (ok && (at(Kind::kLet) || at(Kind::kName))) continue;  // only the ';' is missing
    skip_statement();
    if (at_ == before) take();
  }
  expect(Kind::kRightBrace);
}

bool Parser::parse_stmt(AstStmt& stmt) {
  const uint32_t begin = current().range.begin;
  stmt.is_let = accept(Kind::kLet);
  const std::optional<AstName> name = parse_name("a tensor");
  if (!name) return false;
  stmt.name = *name;
  if (at_call()) return parse_call_stmt(stmt);
  if (refuse_foreign_statement(stmt)) return false;
  if (accept(Kind::kLeftBracket)) {
    if (refuse_left_subscript()) return false;
    if (!parse_indices(stmt.indices) || !expect(Kind::kRightBracket)) return false;
  }
  if (accept(Kind::kColon)) {
    stmt.type = parse_type();
    if (!stmt.type) return false;
  }
  if (refuse_compound(stmt) || !expect(Kind::kAssign)) return false;
  stmt.value = parse_expr();
  stmt.range = range_since(begin);
  return stmt.value != nullptr;
}

bool Parser::parse_indices(std::vector<AstIndex>& indices) {
  do {
    const std::optional<AstName> name = parse_name("an index");
    if (!name) return false;
    AstIndex index;
    index.name = *name;
    if (accept(Kind::kIn)) {
      index.begin = parse_sum();
      if (index.begin == nullptr || !expect(Kind::kDotDot)) return false;
      index.end = parse_sum();
      if (index.end == nullptr) return false;
    }
    indices.push_back(index);
    if (!check_count(indices.size(), name->range)) return false;
  } while (accept(Kind::kComma));
  return true;
}

bool Parser::check_count(size_t count, SourceRange range) {
  if (count <= kMaxListLength) return true;
  sink_.report<LangDiag::kListTooLong>(range, kMaxListLength);
  return false;
}

std::optional<AstName> Parser::parse_name(std::string_view what) {
  const Token& token = current();
  if (token.kind == Kind::kName) {
    take();
    return AstName{token.text, token.range};
  }
  if (!token.text.empty() && classify_word(token.text) != Kind::kName) {
    sink_.report<LangDiag::kReservedName>(token.range, token.text, what);
  } else {
    report_expected(describe(Kind::kName));
  }
  return std::nullopt;
}

std::optional<AstType> Parser::parse_type() {
  const Token token = current();
  if (!at(Kind::kDtype) && !at(Kind::kName)) {
    report_expected(describe(Kind::kDtype));
    return std::nullopt;
  }
  take();
  return AstType{ir::dtype_from_string(token.text), {token.text, token.range}};
}

AstFile parse_file(const SourceSet& sources, uint32_t file, DiagSink& sink, size_t max_bytes) {
  AstFile result;
  if (sources.text(file).size() > max_bytes) {
    sink.report<LangDiag::kFileTooLarge>(SourceRange{file, 0, 0}, sources.text(file).size(),
                                         max_bytes);
    return result;
  }
  Parser(tokenize(sources, file, sink), result, sink).parse_items();
  return result;
}

std::optional<AstStmt> parse_statement(const SourceSet& sources, uint32_t file, AstFile& arena,
                                       DiagSink& sink) {
  if (sources.text(file).size() > kMaxFileBytes) {
    sink.report<LangDiag::kFileTooLarge>(SourceRange{file, 0, 0}, sources.text(file).size(),
                                         kMaxFileBytes);
    return std::nullopt;
  }
  const int errors_before = sink.num_errors();
  Parser parser(tokenize(sources, file, sink), arena, sink);
  AstStmt stmt;
  if (!parser.parse_stmt(stmt)) return std::nullopt;
  parser.accept(Kind::kSemicolon);
  if (!parser.expect(Kind::kEnd) || sink.num_errors() != errors_before) return std::nullopt;
  return stmt;
}

}  // namespace prunerc::lang
