// The bound form of an operator: names resolved, parameters replaced by numbers, types inferred,
// functions expanded.
#ifndef PRUNERC_IR_LANG_TYPED_H_
#define PRUNERC_IR_LANG_TYPED_H_

#include "ir/dtype.h"
#include "ir/expr.h"
#include "ir/lang/parse/ast.h"
#include "ir/lang/source.h"

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::lang {

/// A dtype, or "a number that takes the type of its context".
struct Type {
  enum class Kind : uint8_t { kTyped, kUntypedInt, kUntypedFloat };
  Kind kind = Kind::kTyped;
  ir::DType dtype = ir::DType::kF32;  // if kTyped

  static Type of(ir::DType dtype) { return {Kind::kTyped, dtype}; }
  bool is_typed() const { return kind == Kind::kTyped; }
  bool is_bool() const { return is_typed() && dtype == ir::DType::kBool; }
  bool is_float() const { return is_typed() ? ir::is_float(dtype) : kind == Kind::kUntypedFloat; }
  bool is_int() const { return is_typed() ? ir::is_int(dtype) : kind == Kind::kUntypedInt; }
};

/// "f32", "a constant integer" or "a constant float".
std::string to_string(Type type);

/// An unknown of the extents solver; see extents.h.
using Unknown = int32_t;

/// An index of one statement. Its values are begin .. end; end is solved after binding.
struct IndexVar {
  std::string name;
  SourceRange range;
  Unknown unknown = -1;
  int64_t begin = 0;
  int64_t end = 0;
  int number = 0;  // position among all indices of the operator

  int64_t extent() const { return end > begin ? end - begin : 0; }
};

enum class TensorRole : uint8_t { kInput, kOutput, kLet };

struct Tensor {
  std::string name;
  SourceRange range;
  TensorRole role = TensorRole::kInput;
  bool is_const = false;           // the same in every call
  std::optional<ir::DType> dtype;  // unknown until a let's value is bound
  size_t rank = 0;
  std::vector<int64_t> shape;     // ports: from the start; lets: after solving
  std::vector<Unknown> unknowns;  // lets only
  std::vector<SourceRange> shape_ranges;
  bool is_assigned = false;
  bool is_read = false;
  bool is_broken = false;  // an error about it was reported; its readers stay silent
};

enum class NodeKind : uint8_t {
  kInt,    // int_value, untyped or of an integer type
  kFloat,  // float_value, untyped or of a float type
  kBool,   // int_value 0 or 1
  kIndex,
  kRead,    // tensor[args] or or_value
  kUnary,   // op args[0]
  kBinary,  // args[0] op args[1]; comparisons and && || too
  kMin,
  kMax,
  kIf,      // args: condition, then, else; only the chosen branch is evaluated
  kSelect,  // the same, both are evaluated
  kCall,    // intrinsic(args)
  kCast,    // to `type`
  kReduce,  // reducer[indices | condition] args[0], accumulated in `accumulator`
};

/// An immutable expression; shared where an fn used an argument twice. Fields count as `kind`
/// tells.
struct Node {
  NodeKind kind = NodeKind::kInt;
  AstOp op = AstOp::kAdd;
  Reducer reducer = Reducer::kSum;
  ir::Intrinsic intrinsic = ir::Intrinsic::kExp;
  bool has_data = false;     // reads a tensor somewhere
  bool is_implicit = false;  // a cast that nobody wrote
  bool from_int = false;     // a kFloat that int_value says, which may be no double
  Type type;
  SourceRange range;
  uint32_t size = 1;  // as a tree, saturating: bounds the cost of every walk
  uint32_t depth = 1;
  int64_t int_value = 0;
  double float_value = 0;
  const AstExpr* quotient = nullptr;  // an integer division of constants that lost its fraction
  const IndexVar* index = nullptr;
  const Tensor* tensor = nullptr;
  std::vector<const Node*> args;
  const Node* or_value = nullptr;
  std::vector<const IndexVar*> indices;
  const Node* condition = nullptr;
  ir::DType accumulator = ir::DType::kF32;

  bool is_constant() const {
    return kind == NodeKind::kInt || kind == NodeKind::kFloat || kind == NodeKind::kBool;
  }
};

/// Calls f(child) for every operand, `or` value and condition.
template <typename F>
void for_each_child(const Node& node, F&& f) {
  for (const Node* arg : node.args) f(arg);
  if (node.or_value != nullptr) f(node.or_value);
  if (node.condition != nullptr) f(node.condition);
}

/// Same shape, names and values; places in the text do not count.
bool structural_equal(const Node* a, const Node* b);

/// One assignment of the operator, in an order in which values are computed before they are read.
struct BoundStmt {
  const Tensor* target = nullptr;
  std::vector<const IndexVar*> indices;
  const Node* value = nullptr;  // has the target's type
  SourceRange range;
};

/// An operator with everything resolved.
struct BoundOp {
  std::string name;
  std::vector<const Tensor*> inputs, outputs;
  std::vector<BoundStmt> stmts;

  std::deque<Node> nodes;
  std::deque<IndexVar> indices;
  std::deque<Tensor> tensors;
};

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_TYPED_H_
