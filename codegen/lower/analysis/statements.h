// Questions about statements, and small rewrites of them, that several passes share.
#ifndef PRUNERC_CODEGEN_LOWER_ANALYSIS_STATEMENTS_H_
#define PRUNERC_CODEGEN_LOWER_ANALYSIS_STATEMENTS_H_

#include "ir/builder.h"
#include "ir/map.h"
#include "ir/program.h"
#include "ir/query.h"
#include "ir/visit.h"

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

/// A buffer up to this size may become registers: twice the register file of a core with 32 vectors
/// of 64 bytes.
inline constexpr int64_t kMaxRegisterTileBytes = 4096;
inline constexpr int64_t kWarpSize = 32;

void collect_vars(ir::Expr e, std::set<ir::VarId>* out);
std::set<ir::BufferId> stored_buffers(ir::Stmt s);
std::set<ir::BufferId> loaded_buffers(ir::Stmt s);
/// Statements that store to the buffer, copies of loops counted once.
int64_t num_stores(ir::Stmt s, ir::BufferId buffer);
/// Does e do the load whatever the conditions in it say? In a condition, or in both of what it decides between.
bool always_loads(ir::Expr e, ir::Expr load);
/// Is there a division of whole numbers whose divisor is not known? Where a condition hides it that may be 0.
bool may_trap(ir::Expr e);
/// The select of `T = T op select(c, x, e)` with e the operation's identity; null for others.
const ir::Select* masked_update(ir::IrBuilder& b, const ir::Store& store);
/// The constant value of e, or `otherwise`.
int64_t constant_or(ir::Expr e, int64_t otherwise);
/// What one step of the variable adds; nullopt if e is not affine in it.
std::optional<int64_t> step_of(ir::Expr e, ir::VarId var);
/// The last dimension longer than 1, along which elements follow each other; 0 if there is none.
std::size_t innermost_dim(const ir::Buffer& buffer);
/// Vectorized or unrolled: the loops whose copies form one tile of code.
bool is_tile_loop(const ir::Loop& loop);
/// Number of statements, copies of unrolled loops counted.
int64_t code_size(ir::Stmt s);

/// Is there a loop in s, or is it one, for which f(loop) holds?
template <typename F>
bool any_loop(ir::Stmt s, F&& f) {
  bool found = false;
  ir::walk(
      s,
      [&](ir::Stmt x) {
        const ir::Loop* loop = x.as<ir::Loop>();
        found = found || (loop != nullptr && f(*loop));
        return !found;
      },
      [](ir::Expr) {});
  return found;
}

/// s with f applied to each statement directly inside of it.
ir::Stmt map_stmts(ir::IrBuilder& b, ir::Stmt s, const ir::StmtFn& f);

/// x && y; y if x is null.
ir::Expr conjunction(ir::IrBuilder& b, ir::Expr x, ir::Expr y);
/// s inside of one If for each condition, the first outermost.
ir::Stmt if_all(ir::IrBuilder& b, std::span<const ir::Expr> conditions, ir::Stmt s);

/// A loop with fresh ids, as yet without a body.
ir::Loop make_loop(ir::IrBuilder& b, std::string_view name, int64_t extent,
                   ir::LoopKind kind = ir::LoopKind::kSerial);
/// The loop with more attributes behind its own.
ir::Stmt add_attrs(ir::IrBuilder& b, const ir::Loop& loop, std::span<const ir::Attr> more);

/// The statement inside of the Allocs around it, whose buffers are appended, outermost first.
ir::Stmt below_allocs(ir::Stmt s, std::vector<ir::BufferId>* allocs);

/// Every store and load of `buffers` below s with the indices that f makes of the old ones; their
/// number may change (set_buffer comes first).
ir::Stmt map_indices(ir::IrBuilder& b, ir::Stmt s, const std::set<ir::BufferId>& buffers,
                     const std::function<std::vector<ir::Expr>(std::span<const ir::Expr>)>& f);
/// The buffer gets more dimensions, in front of its own.
void add_leading_dims(ir::IrBuilder& b, ir::BufferId id, const std::vector<ir::Expr>& extents);
/// What add_leading_dims asks of the accesses: more indices in front.
ir::Stmt add_leading_indices(ir::IrBuilder& b, ir::Stmt s, const std::set<ir::BufferId>& buffers,
                             const std::vector<ir::Expr>& leading);
std::vector<ir::Expr> concat(std::vector<ir::Expr> a, std::span<const ir::Expr> b);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_ANALYSIS_STATEMENTS_H_
