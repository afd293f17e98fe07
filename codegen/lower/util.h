// Small questions that several lowering passes ask.
#ifndef PRUNERC_CODEGEN_LOWER_UTIL_H_
#define PRUNERC_CODEGEN_LOWER_UTIL_H_

#include "ir/builder.h"
#include "ir/program.h"
#include "ir/query.h"

#include <functional>
#include <set>
#include <vector>

namespace prunerc::codegen {

void collect_vars(ir::Expr e, std::set<ir::VarId>* out);
std::set<ir::BufferId> stored_buffers(ir::Stmt s);
std::set<ir::BufferId> loaded_buffers(ir::Stmt s);
/// The constant value of e, or `otherwise`.
int64_t constant_or(ir::Expr e, int64_t otherwise);
/// Every store and load of `buffers` below s with the indices that f makes of the old ones; their
/// number may change (set_buffer comes first).
ir::Stmt map_indices(ir::IrBuilder& b, ir::Stmt s, const std::set<ir::BufferId>& buffers,
                     const std::function<std::vector<ir::Expr>(std::span<const ir::Expr>)>& f);
/// Vectorized or unrolled: the loops whose copies form one tile of code.
bool is_tile_loop(const ir::Loop& loop);
/// Number of statements, copies of unrolled loops counted.
int64_t code_size(ir::Stmt s);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_UTIL_H_
