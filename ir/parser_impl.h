// The recursive-descent parser of program text. Used by parser.cc, parse_stmt.cc and parse_expr.cc
// alone.
#ifndef PRUNERC_IR_PARSER_IMPL_H_
#define PRUNERC_IR_PARSER_IMPL_H_

#include "ir/builder.h"
#include "ir/lexer.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace prunerc::ir {

// Later passes recurse over trees: these bounds keep them far from the end of the stack.
inline constexpr int kMaxExprHeight = 1000;
inline constexpr int kMaxExprNesting = 200;
inline constexpr int kMaxStmtNesting = 200;
// What is proved of a program takes the square of these, or more.
inline constexpr int kMaxBlockIters = 64;
inline constexpr int kMaxBlocks = 256;
inline constexpr int kMaxStmts = 4096;

struct Parsed {
  Expr expr;
  int height = 1;
};

class Parser {
 public:
  Parser(std::vector<Token> tokens, std::string_view name) : tokens_(std::move(tokens)), b_(name) {}

  Result<Program> program();

 private:
  // Tokens.
  const Token& peek(std::size_t ahead = 0) const {
    return tokens_[std::min(next_ + ahead, tokens_.size() - 1)];
  }
  const Token& take() { return tokens_[next_ + 1 < tokens_.size() ? next_++ : next_]; }
  bool at(std::string_view text) const {
    return peek().text == text && peek().kind != TokenKind::kString;
  }
  bool accept(std::string_view text) { return at(text) && (take(), true); }
  Error expected(std::string what) const {
    return error_at(peek().locus, Diag::kParseExpected, std::move(what), describe(peek()));
  }
  Result<void> expect(std::string_view text) {
    if (accept(text)) return {};
    return expected("'" + std::string(text) + "'");
  }
  Result<std::string_view> name(const char* what) {
    if (peek().kind != TokenKind::kName) return expected(what);
    return take().text;
  }
  Result<int64_t> integer(const char* what);
  Result<int32_t> id_number(std::string_view sigil, int32_t fresh);
  void reserve_explicit_ids();

  // Declarations.
  Result<void> ports(BufferRole role);
  Result<void> port(BufferRole role, bool with_scope);
  Result<bool> domain_line();
  Result<std::vector<ParamId>> param_list();
  Result<ParamId> param_ref();

  // Statements.
  Result<Stmt> body();  // "{" is taken already; takes "}"
  Result<Stmt> stmt();
  Result<LoopKind> loop_kind();
  Result<Stmt> loop();
  Result<Stmt> block();
  Result<Stmt> store();
  Result<Stmt> if_stmt();
  Result<Stmt> alloc();
  // "{name =" opens attributes: a store has "[" after its buffer.
  bool at_attrs() const {
    return at("{") && peek(1).kind == TokenKind::kName && peek(2).text == "=";
  }
  Result<std::vector<Attr>> attrs();
  using Names = std::vector<std::pair<std::string_view, const Var*>>;
  Result<const Combiner*> combiner(Stmt init);
  Result<std::vector<const Var*>> partial(std::span<const BufferId> targets);
  Result<Names> iter_list(std::vector<IterVar>* iters);
  Result<std::vector<Access>> accesses();
  Result<Access> access();

  // Expressions.
  Result<Expr> expr(DType type, const char* what);
  Result<Parsed> binary(int level);
  Result<Parsed> unary();
  Result<Parsed> primary();
  Result<Parsed> number(bool negative);
  Result<Parsed> typed(DType type);
  Result<Parsed> function(std::string_view function_name, Locus locus);
  Result<Parsed> combine(ExprKind kind, Parsed lhs, Parsed rhs, Locus locus);
  Result<std::vector<Parsed>> arguments(std::string_view close);
  Result<BufferId> buffer_ref();
  Result<std::vector<Expr>> indices(BufferId buffer, Locus locus, int* height);
  const Var* find_var(std::string_view var_name) const;

  std::vector<Token> tokens_;
  std::size_t next_ = 0;
  IrBuilder b_;
  std::vector<std::pair<std::string_view, const Var*>> scope_;
  std::unordered_map<std::string_view, BufferId> buffers_;
  int num_params_ = 0;
  int num_blocks_ = 0;
  int num_stmts_ = 0;
  int stmt_depth_ = 0;
  int expr_depth_ = 0;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_PARSER_IMPL_H_
