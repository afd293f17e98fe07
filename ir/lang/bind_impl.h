// The binder's class, shared by bind.cc (parameters, ports), bind_stmt.cc (statements) and
// bind_expr.cc (expressions).
#ifndef PRUNERC_IR_LANG_BIND_IMPL_H_
#define PRUNERC_IR_LANG_BIND_IMPL_H_

#include "ir/lang/bind.h"
#include "ir/lang/extents.h"
#include "ir/lang/typing.h"

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::lang {

enum class SymbolKind : uint8_t { kConst, kFn, kParam, kTypeParam, kSize, kTensor };

/// What a name of the operator's scope means. A null value, or a broken tensor: an error was
/// reported before.
struct Symbol {
  SymbolKind kind = SymbolKind::kConst;
  SourceRange range;
  const Node* value = nullptr;     // kConst, kParam, kSize
  std::optional<ir::DType> dtype;  // kTypeParam
  const AstFn* fn = nullptr;
  Tensor* tensor = nullptr;
};

/// "a parameter", "a tensor of 2 dimensions", ...
std::string describe(const Symbol& symbol);
/// "'M', 'N'", the first few.
std::string list_names(const std::vector<std::string_view>& names);

class Binder {
 public:
  Binder(const Module& module, const AstOperator& op, const BindOptions& options,
         SourceSet& sources, DiagSink& sink);
  std::unique_ptr<BoundOp> run();

 private:
  // bind.cc: what surrounds the statements.
  void check_fns();
  void bind_consts();
  void add_command_line();
  void bind_params();
  const Node* bind_param(const AstParam& param, const std::string& given, SourceRange range);
  const Node* bind_default(const AstParam& param);
  void bind_type_param(const AstParam& param, Symbol& symbol);
  void bind_shapes(std::map<std::string_view, int64_t>& from_shapes);
  void bind_wheres();
  void bind_ports();
  Tensor* bind_port(const AstPort& port, TensorRole role);
  void bind_port_shape(const AstPort& port, Tensor& tensor);
  void check_given_shape(const AstPort& port, const Tensor& tensor);
  bool declare(const AstName& name, Symbol symbol);
  std::string numbers_in(const AstExpr* expr) const;
  std::optional<int64_t> constant_int(const AstExpr* expr, std::string_view what,
                                      std::string_view advice = {});

  // bind_stmt.cc
  void declare_targets();
  Tensor* declare_target(const AstStmt& stmt);
  void order_stmts();
  void visit_stmt(size_t start);
  void bind_stmt(const AstStmt& stmt, Tensor* target);
  const Node* convert_value(const AstStmt& stmt, Tensor* target, const Node* value);
  std::vector<const IndexVar*> bind_left(const AstStmt& stmt, Tensor* target);
  IndexVar* make_index(const AstIndex& index);
  void solve();
  void check_size(Tensor& tensor);

  // bind_expr.cc
  const Node* bind(const AstExpr* expr);
  const Node* bind_kind(const AstExpr& expr);
  const Node* bind_name(const AstExpr& expr);
  const Node* bind_symbol(const AstExpr& expr, const Symbol& symbol);
  const Node* bind_read(const AstExpr& expr);
  void equate(const AstExpr* subscript, const Tensor& tensor, size_t dim);
  const Node* bind_call(const AstExpr& expr);
  const Node* bind_binary(const AstExpr& expr);
  const Node* bind_reduce(const AstExpr& expr);
  const Node* expand(const AstExpr& call, const AstFn& fn, std::vector<const Node*> args);
  std::optional<ir::DType> resolve_type(const AstType& type);
  const IndexVar* find_index(std::string_view name) const;
  const Symbol* find_symbol(std::string_view name) const;
  /// What a name that is not defined should have been.
  enum class Wanted : uint8_t { kValue, kTensor, kFunction, kType };
  static bool is_candidate(const Symbol& symbol, Wanted wanted);
  void report_unknown(const AstName& name, Wanted wanted);
  void report_after_body(const AstExpr& expr);

  struct FnFrame {
    const AstFn* fn;
    std::vector<const Node*> args;
    const FnFrame* parent;
  };
  struct EndedReduction {
    std::string_view index;
    SourceRange body;
    bool is_reported;
  };

  const Module& module_;
  const AstOperator& ast_;
  const BindOptions& options_;
  SourceSet& sources_;
  DiagSink& sink_;
  std::unique_ptr<BoundOp> op_;
  Typing typing_;
  Extents extents_;
  std::map<std::string_view, Symbol> symbols_;
  std::map<std::string, SourceRange> command_line_;  // binding -> its place in the pseudo file
  std::set<const AstFn*> broken_fns_;
  std::deque<std::string> names_;  // of symbols that do not stand in a text

  std::vector<Tensor*> targets_;      // by statement; null: reported
  std::vector<uint8_t> visit_state_;  // by statement, while ordering
  std::vector<size_t> order_;
  std::map<const Tensor*, size_t> producers_;  // target -> statement

  // Per statement.
  std::vector<const IndexVar*> active_;
  std::vector<EndedReduction> ended_;
  std::vector<SourceRange> operands_;  // right operands that are being bound
  const FnFrame* frame_ = nullptr;
  uint32_t depth_ = 0;
};

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_BIND_IMPL_H_
