// The parser's class, shared by parser.cc (files, items, statements), parse_expr.cc (expressions),
// parse_call.cc and parse_net.cc.
#ifndef PRUNERC_IR_LANG_PARSE_PARSER_IMPL_H_
#define PRUNERC_IR_LANG_PARSE_PARSER_IMPL_H_

#include "ir/lang/parse/ast.h"
#include "ir/lang/parse/lexer.h"
#include "ir/lang/parse/parser.h"

#include <initializer_list>
#include <string_view>
#include <vector>

namespace prunerc::lang {

/// Functions return null, nullopt or false after they have reported an error; the caller returns
/// the same, up to a place that recovers.
class Parser {
 public:
  Parser(std::vector<Token> tokens, AstFile& file, DiagSink& sink)
      : tokens_(std::move(tokens)), file_(file), sink_(sink) {}

  void parse_items();
  bool parse_stmt(AstStmt& stmt);
  bool at(TokenKind kind) const { return current().kind == kind; }
  bool accept(TokenKind kind);
  bool expect(TokenKind kind);

 private:
  // Tokens.
  const Token& current() const { return tokens_[at_]; }
  const Token& ahead(size_t count) const {
    return tokens_[at_ + count < tokens_.size() ? at_ + count : tokens_.size() - 1];
  }
  const Token& next() const { return ahead(1); }
  Token take();
  void report_expected(std::string_view what);
  void skip_statement();
  void skip_item();
  void skip_header();
  bool starts_item() const;

  // Items.
  void parse_item();
  bool parse_import();
  bool parse_const();
  bool parse_fn();
  void parse_operator();
  bool at_net() const;
  bool parse_net();
  bool parse_net_body(AstNet& net);
  bool parse_net_task(AstNet& net);
  bool parse_net_header(AstNet& net);
  bool parse_net_item(AstNet& net);
  bool parse_net_const(AstNet& net);
  // Calls of operators (parse_call.cc).
  bool at_call() const;
  bool parse_call_stmt(AstStmt& stmt);
  bool parse_call_of(AstCall& call);
  bool parse_call_args(AstCall& call);
  bool parse_label(std::optional<AstName>& label);
  bool parse_bindings(std::vector<AstBinding>& bindings);
  std::optional<AstName> parse_operator_name();
  bool parse_header(AstOperator& op);
  bool parse_signature(AstOperator& op);
  bool parse_param(AstParam& param);
  bool parse_param_default(AstParam& param);
  bool parse_ports(std::vector<AstPort>& ports);
  bool parse_port(AstPort& port);
  bool parse_where(AstWhere& where);
  void parse_body(AstOperator& op);
  // Forms of other languages, answered with ours.
  bool refuse_foreign_statement(AstStmt& stmt);
  bool refuse_left_subscript();
  bool refuse_compound(const AstStmt& stmt);
  const AstExpr* refuse_power(const AstExpr& base);
  /// Whether two tokens stand here without a blank, as in '+='.
  bool at_pair(TokenKind first, TokenKind second) const;
  std::string_view text_of(SourceRange range) const;
  bool check_count(size_t count, SourceRange range);
  bool parse_indices(std::vector<AstIndex>& indices);
  std::optional<AstName> parse_name(std::string_view what);
  static std::string_view unquoted(std::string_view text);
  std::optional<AstType> parse_type();

  // Expressions.
  const AstExpr* parse_expr();
  const AstExpr* parse_sum();
  const AstExpr* parse_binary(int min_precedence);
  const AstExpr* parse_unary();
  const AstExpr* parse_operand();
  const AstExpr* parse_primary();
  const AstExpr* parse_if();
  const AstExpr* parse_number();
  const AstExpr* parse_extreme();
  const AstExpr* parse_cast();
  const AstExpr* parse_name_expr();
  const AstExpr* parse_read(AstName name);
  const AstExpr* parse_call(AstName name);
  const AstExpr* parse_reduction();
  const AstExpr* parse_product();
  const AstExpr* parse_paren();
  bool parse_args(TokenKind close, std::vector<const AstExpr*>& args);
  /// Puts a finished node into the file's arena, or reports that it is too deep.
  const AstExpr* keep(AstExpr expr);
  SourceRange range_since(uint32_t begin) const;

  std::vector<Token> tokens_;
  AstFile& file_;
  DiagSink& sink_;
  size_t at_ = 0;
  uint32_t depth_ = 0;  // of the recursion, in expressions
};

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_PARSE_PARSER_IMPL_H_
