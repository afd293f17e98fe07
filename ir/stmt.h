// Statements: loops, blocks, stores. Immutable nodes behind handles that borrow from a Program.
// Data only.
#ifndef PRUNERC_IR_STMT_H_
#define PRUNERC_IR_STMT_H_

#include "ir/expr.h"

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

namespace prunerc::ir {

enum class StmtKind : uint8_t {
#define PRUNERC_STMT(name, text) k##name,
#include "ir/stmt_kind.def"
#undef PRUNERC_STMT
};

enum class LoopKind : uint8_t {
#define PRUNERC_LOOP_KIND(name, text) k##name,
#include "ir/loop_kind.def"
#undef PRUNERC_LOOP_KIND
};

std::string_view to_string(StmtKind kind);
std::string_view to_string(LoopKind kind);

struct StmtNode {
  StmtKind kind;
  uint64_t hash;
};

/// Borrowed handle to an immutable statement node; valid while its Program lives. Null by default
/// ("nothing").
class Stmt {
 public:
  constexpr Stmt() = default;
  constexpr Stmt(const StmtNode* node) : node_(node) {}  // NOLINT: made by IrBuilder only
  constexpr bool defined() const { return node_ != nullptr; }
  StmtKind kind() const { return node_->kind; }
  uint64_t hash() const { return node_->hash; }
  bool is(Stmt other) const { return node_ == other.node_; }
  template <typename N>
  const N* as() const {
    return node_ != nullptr && node_->kind == N::kKind ? static_cast<const N*>(node_) : nullptr;
  }
  const StmtNode* node() const { return node_; }

 private:
  const StmtNode* node_ = nullptr;
};
static_assert(std::is_trivially_copyable_v<Stmt> && sizeof(Stmt) == sizeof(void*));

/// A typed annotation of a loop or a block: key is an identifier, value an integer.
struct Attr {
  std::string_view key;
  int64_t value;
};

/// Statements in order; at least two, none of them a Seq (the builder flattens).
struct Seq : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kSeq;
  std::span<const Stmt> stmts;
};

/// for var in 0 .. extent, step 1.
struct Loop : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kLoop;
  LoopId id;
  const Var* var;
  Expr extent;
  LoopKind loop_kind;
  std::span<const Attr> attrs;
  Stmt body;
};

/// How a block's instances may be ordered along an iteration variable. Opaque: only as written.
enum class IterKind : uint8_t { kSpatial, kReduce, kOpaque };

/// A block's iteration variable: var in 0 .. extent, bound to an expression over the enclosing
/// loops' variables.
struct IterVar {
  const Var* var;
  Expr extent;
  IterKind kind;
  Expr binding;
};

/// Half-open interval [min, min + extent) of one dimension.
struct Range {
  Expr min;
  Expr extent;
};

/// A rectangular region of a buffer in terms of a block's iteration variables; one range per
/// dimension.
struct Access {
  BufferId buffer;
  std::span<const Range> region;
};

/// How two partial results of a reduction combine: results[t] is what the t-th buffer that the
/// block's init stores to holds afterwards, elementwise, where left[t] and right[t] are what the
/// partial results hold. Closed: mentions nothing else. A claim, which whoever relies on it checks.
struct Combiner {
  std::span<const Var*const> left, right;
  std::span<const Expr> results;
};

/// A computation unit (TensorIR block and its realization in one node). The body mentions only the
/// iteration variables and buffers. `guard` (null: always) is over the enclosing loops' variables:
/// the instance runs only if it holds. `init` (null: none) runs first in the instance whose
/// reduction iterations are all 0. `combiner` (null: none) is for reductions whose body does not
/// say by itself how partial results combine.
struct Block : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kBlock;
  BlockId id;
  std::string_view name;
  std::span<const IterVar> iters;
  std::span<const Access> reads, writes;
  Expr guard;
  Stmt init, body;
  std::span<const Attr> attrs;
  const Combiner* combiner = nullptr;
};

/// buffer[indices] = value
struct Store : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kStore;
  BufferId buffer;
  std::span<const Expr> indices;
  Expr value;
};

struct If : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kIf;
  Expr condition;
  Stmt then_body;
  Stmt else_body;  // null: none
};

/// The buffer exists, uninitialised, once per execution of `body`. Only lowered programs hold it:
/// before lowering an intermediate buffer is declared by the Program and its place is derived from
/// its accesses.
struct Alloc : StmtNode {
  static constexpr StmtKind kKind = StmtKind::kAlloc;
  BufferId buffer;
  Stmt body;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_STMT_H_
