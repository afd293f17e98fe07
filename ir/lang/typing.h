// The type rules: makes typed nodes from operands, folds constants, inserts the implicit
// conversions.
#ifndef PRUNERC_IR_LANG_TYPING_H_
#define PRUNERC_IR_LANG_TYPING_H_

#include "ir/lang/typed.h"

#include <string_view>
#include <utility>
#include <vector>

namespace prunerc::lang {

/// Larger or deeper expressions are refused: functions that double their argument would otherwise
/// take all memory.
inline constexpr uint32_t kMaxNodes = 20'000;
inline constexpr uint32_t kMaxNodeDepth = 600;
/// The same for a whole operator.
inline constexpr size_t kMaxNodesOfOp = 400'000;

/// True if `from` widens to `to` implicitly.
bool widens(ir::DType from, ir::DType to);
/// The smallest type that both widen to.
std::optional<ir::DType> common_type(ir::DType a, ir::DType b);

/// Makes nodes. A null result means that an error was reported; null operands give null without a
/// further one.
class Typing {
 public:
  Typing(std::deque<Node>& nodes, DiagSink& sink) : nodes_(nodes), sink_(sink) {}

  // Leaves.
  const Node* int_constant(int64_t value, SourceRange range);
  const Node* float_constant(double value, SourceRange range);
  const Node* bool_constant(bool value, SourceRange range);
  const Node* extreme(ir::DType dtype, bool is_highest, SourceRange range);
  const Node* index(const IndexVar* index, SourceRange range);
  /// Subscripts become i64, `or_value` (may be null) takes the tensor's type.
  const Node* read(const Tensor* tensor, std::vector<const Node*> subscripts, const Node* or_value,
                   bool has_or, SourceRange range);

  // Operators; `expr` gives the places.
  const Node* unary(const AstExpr& expr, const Node* operand);
  const Node* binary(const AstExpr& expr, const Node* lhs, const Node* rhs);
  const Node* choose(NodeKind kind, const Node* condition, const Node* on_true,
                     const Node* on_false, SourceRange range);
  const Node* call(const AstExpr& expr, std::vector<const Node*> args);
  const Node* cast(ir::DType dtype, const Node* operand, SourceRange range);
  const Node* reduce(const AstExpr& expr, std::optional<ir::DType> accumulator,
                     std::vector<const IndexVar*> indices, const Node* condition, const Node* body);

  /// Implicit conversion: a constant takes the type, a typed value widens or is an error.
  const Node* convert(const Node* node, ir::DType dtype);
  /// Checks that `node` is a bool; `what` names it in the message.
  const Node* condition(const Node* node, std::string_view what);
  /// A copy at another place.
  const Node* at(const Node* node, SourceRange range);

  /// The type in which the body of a reduction is evaluated, while it is bound; gives the one
  /// before.
  std::optional<ir::DType> set_body_type(std::optional<ir::DType> dtype) {
    return std::exchange(body_type_, dtype);
  }
  /// True after a limit on the number of nodes was hit: nothing more is made or reported.
  bool is_exhausted() const { return is_exhausted_; }

 private:
  const Node* keep(Node node);
  const Node* fold(const AstExpr& expr, const Node* lhs, const Node* rhs);
  const Node* fold_int(const AstExpr& expr, const Node* lhs, const Node* rhs);
  const Node* fold_float(const AstExpr& expr, const Node* lhs, const Node* rhs);
  const Node* logical(const AstExpr& expr, const Node* lhs, const Node* rhs);
  const Node* compare(const AstExpr& expr, const Node* lhs, const Node* rhs);
  const Node* extremum(const AstExpr& expr, std::vector<const Node*> args);
  const Node* call_float(const AstExpr& expr, std::vector<const Node*> args);
  const Node* as_common(const Node* chosen, Type type);
  const Node* minmax(NodeKind kind, const Node* lhs, const Node* rhs, SourceRange range);
  const Node* constant_to(const Node* node, ir::DType dtype);
  const Node* push(const Node* node, ir::DType dtype);
  const Node* widen_body(const Node* node, ir::DType dtype);
  const Node* rebuild(const Node* node, std::vector<const Node*> args, Type type);
  const Node* default_type(const Node* node);
  /// Gives the operands one type in place; false after an error. `dtype` null: all are untyped.
  bool unify(std::vector<const Node*>& operands, Type& type, SourceRange range);
  bool require_number(const Node* node, std::string_view what);
  bool check_quotient(const Node* node);

  std::deque<Node>& nodes_;
  DiagSink& sink_;
  std::optional<ir::DType> body_type_;
  bool is_exhausted_ = false;
};

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_TYPING_H_
