// Expressions of a block as terms: what lift makes of subscripts and values.
#ifndef PRUNERC_SEARCH_ALGEBRA_LIFT_EXPR_H_
#define PRUNERC_SEARCH_ALGEBRA_LIFT_EXPR_H_

#include "ir/expr.h"
#include "search/algebra/term.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::search::algebra {

/// Axes by variable (-1: none of the block's), and their extents.
struct Scope {
  std::function<AxisId(ir::VarId)> axis;
  std::function<int64_t(AxisId)> extent;
};

/// Nullopt if one is no sum of digits of axes. Axes of extent 1 do not occur: they are 0.
std::optional<std::vector<Subscript>> lift_index(std::span<const ir::Expr> indices,
                                                 const Scope& scope);

/// The term of an element; -1 if it is none.
using LoadFn = std::function<TermId(const ir::Load&)>;

/// The term of a value; -1 if it is none: subscripts by data, conditions on data, positions as data.
/// Without a graph it only says whether there is one (0).
TermId lift_value(TermGraph* graph, const Scope& scope, const LoadFn& load, ir::Expr e);

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_LIFT_EXPR_H_
