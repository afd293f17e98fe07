// Bound expressions -> IR expressions, inside one stage.
#ifndef PRUNERC_IR_LANG_EMIT_H_
#define PRUNERC_IR_LANG_EMIT_H_

#include "ir/arith/interval.h"
#include "ir/builder.h"
#include "ir/lang/check.h"
#include "ir/lang/range.h"
#include "ir/lang/typed.h"

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace prunerc::lang {

/// Where a reduction's result lies: a buffer over the indices that it depends on.
struct StageResult {
  ir::BufferId buffer;
  std::vector<const IndexVar*> indices;
};

/// The stage that is being emitted: its iteration variables.
struct StageScope {
  std::map<const IndexVar*, const ir::Var*> vars;
};

/// Conditions of a place, outermost first.
using Conditions = std::vector<Fact>;

/// True if a reduction has nothing to reduce.
bool is_empty(const Node* reduce);

/// Makes the IR expressions of one operator. The tables of buffers and of finished reductions
/// belong to the caller.
class Emitter {
 public:
  Emitter(ir::IrBuilder& builder, const Proofs& proofs,
          const std::map<const Tensor*, ir::BufferId>& buffers,
          const std::unordered_map<const Node*, StageResult>& results)
      : b_(builder), proofs_(proofs), buffers_(buffers), results_(results) {}

  /// Gives a buffer that holds `tensor` extended to the box [low, high] of each dimension, with
  /// `fill` outside of it; nullopt where a test at each read is better.
  using PadFn = std::function<std::optional<ir::BufferId>(
      const Tensor* tensor, std::span<const ir::Interval> box, ir::Expr fill)>;
  /// While set, reads that may leave their tensor go through `pad` where their subscripts are
  /// affine over `ranges`.
  void set_padding(PadFn pad, const ir::VarRanges* ranges) {
    pad_ = std::move(pad);
    ranges_ = ranges;
  }

  /// The value of a node; reductions inside it are loads of their results.
  ir::Expr emit(const Node* node, const StageScope& scope);
  /// Conjunction of conditions; null for none.
  ir::Expr all_of(const Conditions& conditions, const StageScope& scope);
  /// What a reduction starts from.
  ir::Expr identity_of(Reducer reducer, ir::DType dtype);
  /// The value of an index: its iteration variable plus where it begins.
  ir::Expr index_value(const IndexVar* index, const StageScope& scope);
  std::vector<ir::Expr> subscripts(const std::vector<const IndexVar*>& indices,
                                   const StageScope& scope);
  /// Places in a temporary, whose dimensions start at 0 wherever the index starts.
  std::vector<ir::Expr> positions(const std::vector<const IndexVar*>& indices,
                                  const StageScope& scope);

 private:
  ir::Expr emit_unary(const Node* node, const StageScope& scope);
  ir::Expr emit_binary(const Node* node, const StageScope& scope);
  ir::Expr emit_read(const Node* node, const StageScope& scope);
  std::optional<ir::Expr> padded_read(const Node* node, std::vector<ir::Expr> indices,
                                      ir::Expr fill);

  ir::IrBuilder& b_;
  const Proofs& proofs_;
  const std::map<const Tensor*, ir::BufferId>& buffers_;
  const std::unordered_map<const Node*, StageResult>& results_;
  PadFn pad_;
  const ir::VarRanges* ranges_ = nullptr;
};

/// The regions, one element each, of what a block's init and body load and store: those of the
/// `written` buffers, or those of all others.
enum class AccessKind : uint8_t { kReads, kWrites };
std::vector<ir::Access> accesses_of(ir::IrBuilder& builder, const ir::Block& block,
                                    std::span<const ir::BufferId> written, AccessKind kind);

}  // namespace prunerc::lang

#endif  // PRUNERC_IR_LANG_EMIT_H_
