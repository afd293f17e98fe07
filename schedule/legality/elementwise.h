// Elementwise blocks, which compute one element of one buffer from others: what inlining and fusing
// need of them.
#ifndef PRUNERC_SCHEDULE_LEGALITY_ELEMENTWISE_H_
#define PRUNERC_SCHEDULE_LEGALITY_ELEMENTWISE_H_

#include "schedule/legality/dataflow.h"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace prunerc::schedule {

/// "block @B must `what`". Errors: BlockNotSimple.
Error not_simple(const ir::Block& block, std::string what);

/// Position of the iteration variable in each dimension, -1 for the constant 0; nullopt unless the
/// subscripts are distinct variables that name every variable of more than one value.
std::optional<std::vector<int>> variable_subscripts(const ir::Block& block,
                                                    std::span<const ir::Expr> indices);

/// Spatial variables only, no init, one store, which does not read its target.
/// Errors: BlockNotSimple.
Result<void> check_store_form(const ir::Block& block);
/// The same, and sole writer. Errors: BlockNotSimple, BufferManyWriters.
Result<void> check_pure_store(const Dataflow& flow, std::size_t place);

/// The subscripts, the same in all of them, of the block's loads of a buffer; `block` is a single
/// store. Errors: BlockNotSimple.
Result<std::vector<ir::Expr>> common_subscripts(const ir::Block& block, ir::BufferId buffer);
/// The same as positions of distinct variables. Errors: BlockNotSimple.
Result<std::vector<int>> load_subscripts(const ir::Block& block, ir::BufferId buffer);

/// `value` may take the place of the loads of a buffer in `reader`: chains of blocks that use what
/// they read twice would double at each step. `block` is whose value it is. Errors: BlockNotSimple.
Result<void> check_growth(const ir::Block& block, ir::Expr value, const ir::Block& reader,
                          ir::BufferId buffer);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_ELEMENTWISE_H_
