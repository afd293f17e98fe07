// IrBuilder: the only way to make a node. Checks types, folds constants, nothing else.
#ifndef PRUNERC_IR_BUILDER_H_
#define PRUNERC_IR_BUILDER_H_

#include "ir/program.h"
#include "ir/support/result.h"

#include <initializer_list>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace prunerc::ir {

/// Nullopt-like check used by parsers before they build: an error if `kind` cannot take these
/// operand types.
Result<DType> binary_type(ExprKind kind, DType lhs, DType rhs);

/// Makes the nodes of one new version of a program. Operand types must fit (PRUNERC_CHECK): whoever
/// reads text checks with binary_type first. finish() freezes the arena; the builder is then spent.
/// Threads: one builder belongs to one thread.
class IrBuilder {
 public:
  /// A new program.
  explicit IrBuilder(std::string_view program_name);
  /// A new version of `base`: its nodes may be reused, its ids and buffers continue.
  explicit IrBuilder(const Program& base);

  // Leaves.
  Expr int_imm(int64_t value, DType dtype = DType::kI64);  // wrapped to dtype
  Expr bool_imm(bool value) { return int_imm(value ? 1 : 0, DType::kBool); }
  Expr float_imm(double value, DType dtype);  // rounded to dtype
  /// A constant of any type: rounded, or truncated and saturated.
  Expr constant(double value, DType dtype);
  const Var* fresh_var(std::string_view name, DType dtype = DType::kI64);
  /// The same variable (id and name) as a node of this arena.
  const Var* copy_var(const Var& var);
  Expr param(ParamId id);

  // Operators; `kind` is one of the binary kinds of expr.h.
  Expr binary(ExprKind kind, Expr lhs, Expr rhs);
  Expr add(Expr a, Expr b) { return binary(ExprKind::kAdd, a, b); }
  Expr sub(Expr a, Expr b) { return binary(ExprKind::kSub, a, b); }
  Expr mul(Expr a, Expr b) { return binary(ExprKind::kMul, a, b); }
  Expr div(Expr a, Expr b) { return binary(ExprKind::kDiv, a, b); }
  Expr floordiv(Expr a, Expr b) { return binary(ExprKind::kFloorDiv, a, b); }
  Expr floormod(Expr a, Expr b) { return binary(ExprKind::kFloorMod, a, b); }
  Expr min(Expr a, Expr b) { return binary(ExprKind::kMin, a, b); }
  Expr max(Expr a, Expr b) { return binary(ExprKind::kMax, a, b); }
  Expr eq(Expr a, Expr b) { return binary(ExprKind::kEq, a, b); }
  Expr ne(Expr a, Expr b) { return binary(ExprKind::kNe, a, b); }
  Expr lt(Expr a, Expr b) { return binary(ExprKind::kLt, a, b); }
  Expr le(Expr a, Expr b) { return binary(ExprKind::kLe, a, b); }
  Expr logical_and(Expr a, Expr b) { return binary(ExprKind::kAnd, a, b); }
  Expr logical_or(Expr a, Expr b) { return binary(ExprKind::kOr, a, b); }
  Expr logical_not(Expr a);
  Expr select(Expr condition, Expr on_true, Expr on_false);
  Expr cast(DType dtype, Expr operand);  // returns the operand if it already has the type
  Expr load(BufferId buffer, std::span<const Expr> indices);
  Expr call(Intrinsic intrinsic, std::span<const Expr> args);

  // Buffers and domain.
  BufferId add_buffer(std::string_view name, DType dtype, std::span<const Expr> shape, Scope scope,
                      BufferRole role);  // the name is made unique with a suffix
  /// Replaces a buffer's description (shape, scope, dtype); the id stays.
  void set_buffer(const Buffer& buffer);
  /// Marks an input as the same in every call.
  void mark_const(BufferId input);
  /// These buffers are the parameters from now on, inputs before outputs; their roles are those of
  /// set_buffer.
  void set_params(std::span<const BufferId> params) {
    params_.assign(params.begin(), params.end());
  }
  const Buffer& buffer(BufferId id) const { return buffers_[static_cast<std::size_t>(id.value)]; }
  ParamId add_param(std::string_view name);
  void add_tiles(const TileVector& tiles);
  void add_choice(const Choice& choice);
  void add_constraint(Expr constraint);
  void clear_domain();

  // Statements. A null Stmt is "nothing".
  LoopId fresh_loop_id() { return LoopId(next_.loop++); }
  BlockId fresh_block_id() { return BlockId(next_.block++); }
  Stmt seq(std::span<const Stmt> stmts);  // flattens; null for none; the statement itself for one
  Stmt seq(std::initializer_list<Stmt> stmts) {
    return seq(std::span(stmts.begin(), stmts.size()));
  }
  Stmt loop(const Loop& description);    // kind and hash are filled in; spans are copied
  Stmt block(const Block& description);  // the same
  const Combiner* combiner(const Combiner& description);  // copied
  Stmt store(BufferId buffer, std::span<const Expr> indices, Expr value);
  Stmt if_then(Expr condition, Stmt then_body, Stmt else_body = {});
  Stmt alloc(BufferId buffer, Stmt body);

  // Memory for the spans of a description; lives as long as the program.
  template <typename T>
  std::span<const T> copy(std::span<const T> items) {
    return arena_->copy(items);
  }
  template <typename T>
  std::span<const T> copy(const std::vector<T>& items) {
    return arena_->copy(std::span<const T>(items));
  }
  std::string_view copy(std::string_view text) { return arena_->copy(text); }

  /// The finished version. Ids used by nodes made elsewhere (a parser) are taken into account
  /// through reserve_ids.
  Program finish(Stmt root);
  void reserve_ids(IdCounters at_least);

 private:
  template <typename N>
  const N* put(N node);

  std::shared_ptr<Arena> arena_;
  std::string_view name_;
  std::vector<Buffer> buffers_;
  std::vector<BufferId> params_;
  std::vector<std::string_view> param_names_;
  std::vector<TileVector> tiles_;
  std::vector<Choice> choices_;
  std::vector<Expr> constraints_;
  IdCounters next_;
};

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_BUILDER_H_
