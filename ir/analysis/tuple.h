// Reductions into several buffers: what the block's body stores, read off as one step on a tuple,
// and the statements that rfactor makes of it.
#ifndef PRUNERC_IR_ANALYSIS_TUPLE_H_
#define PRUNERC_IR_ANALYSIS_TUPLE_H_

#include "ir/builder.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::ir {

/// A store with the loops around it inside the block, outermost first.
struct TupleStore {
  const Store* store;
  std::vector<const Loop*> loops;
};

/// The block's init and body as stores. An instance's step works elementwise: a target under loops
/// (a row of weighted sums, say) reads its own element and the targets without loops, and those
/// read each other.
struct Tuple {
  std::vector<TupleStore> start;  // one for each target; gives their order
  std::vector<TupleStore> step;   // in order of execution: targets, and scratch between them
  std::size_t size() const { return start.size(); }
  /// The number of the target that is this buffer; size() if none is.
  std::size_t target(BufferId buffer) const;
  /// The step's store to a target.
  const TupleStore& result(std::size_t target) const;
};

/// Nullopt if the init or the body has another form, or an element's place depends on reduction
/// variables.
std::optional<Tuple> read_tuple(const Block& block);

/// An element as an expression.
using ElementFn = std::function<Expr(std::size_t target, std::span<const Expr> indices)>;

/// The statement that sets every target of the tuple to the combination of what it holds and what
/// `right` gives at the same indices. Stored in an order in which nothing is needed that has been
/// overwritten; where there is none, a scratch buffer keeps the old value.
Stmt combine_into(IrBuilder& b, const Tuple& tuple, const Combiner& combiner,
                  const ElementFn& right);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_TUPLE_H_
