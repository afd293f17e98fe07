// The binder's class, shared by bind.cc (parameters, ports), bind_stmt.cc (statements), bind_expr.cc
// (expressions), bind_call.cc (calls of operators) and bind_net.cc.
#ifndef PRUNERC_IR_LANG_BIND_BIND_IMPL_H_
#define PRUNERC_IR_LANG_BIND_BIND_IMPL_H_

#include "ir/lang/bind/bind.h"
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
  TensorRole role = TensorRole::kLet;  // in this operator: a port may be another operator's let
};

/// "a parameter", "a tensor of 2 dimensions", ...
std::string describe(const Symbol& symbol);

/// What an operator and those that are inlined into it have together.
struct Scope {
  Scope(const Module& module_in, SourceSet& sources_in, DiagSink& sink_in)
      : module(module_in),
        sources(sources_in),
        sink(sink_in),
        typing(op->nodes, sink),
        extents(sink) {}
  const Module& module;
  SourceSet& sources;
  DiagSink& sink;
  std::unique_ptr<BoundOp> op = std::make_unique<BoundOp>();
  Typing typing;
  Extents extents;
};

/// The constants and functions of a module: bound once for all of its operators.
struct Globals {
  std::map<std::string_view, Symbol> symbols;
  std::set<const AstFn*> broken_fns;
};

class Binder {
 public:
  Binder(Scope& scope, const AstOperator& op, const BindOptions& options,
         std::shared_ptr<const Globals> globals = nullptr);
  /// True if everything was bound.
  bool run();
  /// The calls of a net, in an order in which values are computed before they are read.
  bool run_net(const AstNet& net, BoundNet& out);

 private:
  // bind.cc: what surrounds the statements.
  void bind_globals();
  const Node* bind_const(const AstConst& item);
  void bind_header();
  void add_command_line();
  void check_bindings();
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
  std::vector<Tensor*> declare_all(const AstStmt& stmt);
  Tensor* declare_target(const AstStmt& stmt, const AstName& name, size_t rank);
  void order_stmts();
  void visit_stmt(size_t start);
  void bind_stmt(const AstStmt& stmt, const std::vector<Tensor*>& targets);
  const Node* convert_value(const AstStmt& stmt, Tensor* target, const Node* value);
  std::vector<const IndexVar*> bind_left(const AstStmt& stmt, Tensor* target);
  Tensor& new_let(const AstName& name, size_t rank, const std::vector<AstIndex>& indices);
  IndexVar* make_index(const AstIndex& index);
  void solve();
  void check_size(Tensor& tensor);

  // bind_call.cc
  /// The operator of a call, and what it is bound to and applied to.
  struct Callee {
    const AstOperator* op = nullptr;
    BindOptions options;
    std::vector<Tensor*> args;
  };
  const AstOperator* callee_of(const AstStmt& stmt) const;
  bool has_dimensions(std::string_view tensor) const;
  std::optional<Callee> resolve_call(const AstStmt& stmt);
  Tensor* resolve_arg(const AstName& name);
  bool add_shape(const AstName& name, const Tensor& arg, const AstPort& port, Callee& callee);
  bool add_binding(const AstBinding& binding, Callee& callee);
  bool check_arg_type(const AstName& name, const Tensor& arg, const AstPort& port,
                      const std::optional<ir::DType>& wanted, const Callee& callee);
  void bind_call_stmt(const AstStmt& stmt, const std::vector<Tensor*>& targets);
  bool inline_call(const AstStmt& stmt, const Callee& callee, const std::vector<Tensor*>& targets);
  bool run_inlined(const Binder& caller, const AstStmt& stmt, const Callee& callee,
                   const std::vector<Tensor*>& targets);
  bool give_result(Tensor& target, ir::DType dtype, const std::vector<int64_t>& shape,
                   const AstName& name);

  // bind_net.cc
  void bind_net_consts(const AstNet& net, BoundNet& out);
  std::optional<double> bind_net_value(const AstNetConst& item, const Tensor& tensor);
  void check_labels();
  bool bind_net_call(const AstStmt& stmt, const std::vector<Tensor*>& targets, BoundNet& out);

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
  enum class Wanted : uint8_t { kValue, kIndex, kSize, kTensor, kFunction, kType };
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

  Scope& scope_;
  const Module& module_;
  const AstOperator& ast_;
  const BindOptions& options_;
  SourceSet& sources_;
  DiagSink& sink_;
  BoundOp* const op_;
  Typing& typing_;
  Extents& extents_;
  const Binder* caller_ = nullptr;  // of an inlined operator
  std::string prefix_;              // of the names of its lets
  std::shared_ptr<const Globals> globals_;
  std::map<std::string_view, Symbol> symbols_;       // beside the globals
  std::map<std::string, SourceRange> command_line_;  // binding -> its place in the pseudo file

  std::vector<std::vector<Tensor*>> targets_;  // by statement; null: reported
  std::vector<uint8_t> visit_state_;           // by statement, while ordering
  std::vector<size_t> order_;
  std::map<const Tensor*, size_t> producers_;  // target -> statement

  // Per statement.
  std::vector<const IndexVar*> active_;
  std::vector<EndedReduction> ended_;
  std::vector<SourceRange> operands_;  // right operands that are being bound
  const FnFrame* frame_ = nullptr;
  const AstExpr* subscript_ = nullptr;  // that is being bound
  bool in_shape_ = false;               // a size of a port is
  uint32_t depth_ = 0;
};

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_BIND_BIND_IMPL_H_
