// Sym: a number, or an expression over tile parameters that folds as far as it can. Written like
// arithmetic.
#ifndef PRUNERC_COSTMODEL_SYMBOL_SYM_H_
#define PRUNERC_COSTMODEL_SYMBOL_SYM_H_

#include "costmodel/symbol/op.h"
#include "ir/support/ids.h"

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace prunerc::costmodel {

class SymGraph;

/// A constant by value, or a borrowed handle of a node in a SymGraph. Constants need no graph, so
/// that arithmetic on a program without parameters is arithmetic on doubles.
class Sym {
 public:
  constexpr Sym(double value = 0) : value_(value) {}  // NOLINT: numbers are symbols
  bool is_constant() const { return graph_ == nullptr; }
  /// Of a constant.
  double value() const { return value_; }
  /// The constant is this number.
  bool is(double number) const { return graph_ == nullptr && value_ == number; }
  SymGraph* graph() const { return graph_; }
  int32_t node() const { return node_; }
  /// The same constant or the same node.
  bool same(Sym other) const {
    return graph_ == other.graph_ && node_ == other.node_ && value_ == other.value_;
  }

 private:
  friend class SymGraph;
  Sym(SymGraph* graph, int32_t node) : graph_(graph), node_(node) {}

  SymGraph* graph_ = nullptr;
  double value_ = 0;
  int32_t node_ = -1;
};

/// Bounds that hold for all values of the parameters; whether all values are integers.
struct SymRange {
  double lo = -std::numeric_limits<double>::infinity();
  double hi = std::numeric_limits<double>::infinity();
  bool is_integer = false;
};

struct SymNode {
  SymOp op = SymOp::kConstant;
  int32_t a = -1, b = -1, c = -1;  // operands; a is the slot of a parameter or coefficient
  double value = 0;                // of a constant
  SymRange range;
};

/// Owns nodes; equal ones are made once. Operands precede what uses them. Threads: one graph
/// belongs to one thread.
class SymGraph {
 public:
  SymGraph();
  SymGraph(const SymGraph&) = delete;
  SymGraph& operator=(const SymGraph&) = delete;

  /// A tile parameter with integer values within [lo, hi]; the first call for a parameter sets
  /// them.
  Sym param(ir::ParamId id, double lo, double hi);
  /// A number that is set for each evaluation, the same for all candidates: what calibration
  /// changes.
  Sym coefficient(int32_t slot);

  Sym binary(SymOp op, Sym a, Sym b);
  Sym unary(SymOp op, Sym a);
  Sym select(Sym condition, Sym on_true, Sym on_false);
  /// The same node with bounds that the caller knows (a product of one loop's tiles is at most its
  /// extent).
  Sym within(Sym a, double lo, double hi);

  const SymNode& node(int32_t id) const { return nodes_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return nodes_.size(); }
  /// What stands for a node: constants are numbers.
  Sym symbol(int32_t id);
  /// The node of a symbol; constants get one.
  int32_t node_of(Sym a);

 private:
  int32_t intern_id(const SymNode& node);
  Sym intern(const SymNode& node);
  void grow();

  std::vector<SymNode> nodes_;
  std::vector<int32_t> table_;  // open addressing; -1: free
};

SymRange range_of(Sym a);

Sym operator+(Sym a, Sym b);
Sym operator-(Sym a, Sym b);
Sym operator*(Sym a, Sym b);
Sym operator/(Sym a, Sym b);
inline Sym& operator+=(Sym& a, Sym b) { return a = a + b; }
inline Sym& operator*=(Sym& a, Sym b) { return a = a * b; }
Sym min(Sym a, Sym b);
Sym max(Sym a, Sym b);
Sym ceil(Sym a);
Sym floor(Sym a);
Sym abs(Sym a);
Sym log2(Sym a);
/// Largest power of two that divides a nonnegative integer.
Sym power_of_two_factor(Sym a);

// Truth values: 1 or 0.
Sym less(Sym a, Sym b);
Sym less_equal(Sym a, Sym b);
Sym equal(Sym a, Sym b);
Sym logical_and(Sym a, Sym b);
Sym logical_or(Sym a, Sym b);
Sym logical_not(Sym a);
Sym select(Sym condition, Sym on_true, Sym on_false);

/// One value per symbol, by walking each node once. For tests, explanations and single candidates;
/// batches go through SymbolCode. Parameters by ParamId.
std::vector<double> evaluate(std::span<const Sym> symbols, std::span<const double> params,
                             std::span<const double> coefficients = {});

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_SYMBOL_SYM_H_
