// Rewriting: map_children returns the node itself if nothing changed, so sharing is kept and
// "changed?" is identity.
#ifndef PRUNERC_IR_MAP_H_
#define PRUNERC_IR_MAP_H_

#include "ir/builder.h"
#include "ir/support/ids.h"

#include <functional>
#include <span>
#include <unordered_map>
#include <vector>

namespace prunerc::ir {

using ExprFn = std::function<Expr(Expr)>;
using StmtFn = std::function<Stmt(Stmt)>;

/// e with f applied to each direct operand; e itself if no operand changed.
Expr map_children(IrBuilder& b, Expr e, const ExprFn& f);

/// s with fs and fe applied to each direct child (the order of for_each_child). A child mapped to
/// null vanishes: a loop, block or alloc without body is null itself, a sequence drops it. s itself
/// if nothing changed.
Stmt map_children(IrBuilder& b, Stmt s, const StmtFn& fs, const ExprFn& fe);

/// Replaces every expression of s, at any depth, by fe(expression) (fe gets whole top-level
/// expressions).
Stmt map_exprs(IrBuilder& b, Stmt s, const ExprFn& fe);

using VarMap = std::unordered_map<VarId, Expr>;
using BufferMap = std::unordered_map<BufferId, BufferId>;

/// Replaces free occurrences of variables.
Expr substitute(IrBuilder& b, Expr e, const VarMap& map);
Stmt substitute(IrBuilder& b, Stmt s, const VarMap& map);
/// Replaces tile parameters by values[param].
Expr substitute_params(IrBuilder& b, Expr e, std::span<const int64_t> values);
/// Redirects loads, stores and declared regions from one buffer to another of the same rank.
Expr replace_buffers(IrBuilder& b, Expr e, const BufferMap& map);
Stmt replace_buffers(IrBuilder& b, Stmt s, const BufferMap& map);
/// The same statement with fresh loop, block and variable ids for everything defined inside.
Stmt clone_with_fresh_ids(IrBuilder& b, Stmt s);

/// Replaces the statement `from` (identity) inside `root` by `to` (null removes it); the path above
/// is rebuilt. Removing the last statement of a loop removes the loop.
Stmt replace_stmt(IrBuilder& b, Stmt root, Stmt from, Stmt to);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_MAP_H_
