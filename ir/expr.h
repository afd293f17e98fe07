// Expressions: immutable nodes behind pointer-sized handles that borrow from a Program. Data only.
#ifndef PRUNERC_IR_EXPR_H_
#define PRUNERC_IR_EXPR_H_

#include "ir/dtype.h"
#include "ir/support/ids.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace prunerc::ir {

enum class ExprKind : uint8_t {
#define PRUNERC_EXPR(name, text) k##name,
#include "ir/expr_kind.def"
#undef PRUNERC_EXPR
};

enum class Intrinsic : uint8_t {
#define PRUNERC_INTRINSIC(name, text, num_args) k##name,
#include "ir/intrinsic.def"
#undef PRUNERC_INTRINSIC
};

std::string_view to_string(ExprKind kind);
std::string_view to_string(Intrinsic intrinsic);
int num_args(Intrinsic intrinsic);

struct ExprNode {
  ExprKind kind;
  DType dtype;
  uint64_t hash;  // structural, ids included; equal expressions have equal hashes
};

/// Borrowed handle to an immutable expression node; valid while its Program lives. Null by default.
class Expr {
 public:
  constexpr Expr() = default;
  constexpr Expr(const ExprNode* node) : node_(node) {}  // NOLINT: made by IrBuilder only
  constexpr bool defined() const { return node_ != nullptr; }
  ExprKind kind() const { return node_->kind; }
  DType dtype() const { return node_->dtype; }
  uint64_t hash() const { return node_->hash; }
  /// Identity, O(1): "unchanged?".
  bool is(Expr other) const { return node_ == other.node_; }
  /// The node if it is an N, else nullptr.
  template <typename N>
  const N* as() const {
    return node_ != nullptr && node_->kind == N::kKind ? static_cast<const N*>(node_) : nullptr;
  }
  const ExprNode* node() const { return node_; }

 private:
  const ExprNode* node_ = nullptr;
};
static_assert(std::is_trivially_copyable_v<Expr> && sizeof(Expr) == sizeof(void*));

/// A loop or block iteration variable, always i64; in a Combiner, a value of any type. The name is
/// for people; the id is the identity.
struct Var : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kVar;
  VarId id;
  std::string_view name;
};
/// A tile parameter of a sketch; always i64 and at least 1 (see domain.h).
struct TileParam : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kTileParam;
  ParamId id;
};
/// A constant of an integer type or bool.
struct IntImm : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kIntImm;
  int64_t value;
};
/// A constant of a float type, already rounded to it.
struct FloatImm : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kFloatImm;
  double value;
};
struct BinaryNode : ExprNode {
  Expr lhs, rhs;
};
#define PRUNERC_BINARY(Name)                             \
  struct Name : BinaryNode {                             \
    static constexpr ExprKind kKind = ExprKind::k##Name; \
  };
// Arithmetic on one type. Integers wrap; Div is for floats, FloorDiv and FloorMod are for integers
// (divisor nonzero).
PRUNERC_BINARY(Add)
PRUNERC_BINARY(Sub)
PRUNERC_BINARY(Mul)
PRUNERC_BINARY(Div)
PRUNERC_BINARY(FloorDiv)
PRUNERC_BINARY(FloorMod)
PRUNERC_BINARY(Min)
PRUNERC_BINARY(Max)
// Comparisons of one type give bool; a > b is written b < a.
PRUNERC_BINARY(Eq)
PRUNERC_BINARY(Ne)
PRUNERC_BINARY(Lt)
PRUNERC_BINARY(Le)
// Short-circuit: the right side is evaluated only if the left does not decide.
PRUNERC_BINARY(And)
PRUNERC_BINARY(Or)
#undef PRUNERC_BINARY
struct Not : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kNot;
  Expr operand;
};
/// Lazy: only the chosen branch is evaluated, so a condition may guard a load.
struct Select : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kSelect;
  Expr condition, on_true, on_false;
};
/// Conversion: float to int truncates and saturates (NaN gives 0), int to int wraps, to bool is
/// x != 0.
struct Cast : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kCast;
  Expr operand;
};
/// One element of a buffer; one i64 index per dimension (none for rank 0).
struct Load : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kLoad;
  BufferId buffer;
  std::span<const Expr> indices;
};
struct Call : ExprNode {
  static constexpr ExprKind kKind = ExprKind::kCall;
  Intrinsic intrinsic;
  std::span<const Expr> args;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_EXPR_H_
