// Where a loop or block stands, and local surgery there. Shared by the primitives.
#ifndef PRUNERC_SCHEDULE_REWRITE_SITE_H_
#define PRUNERC_SCHEDULE_REWRITE_SITE_H_

#include "ir/arith/interval.h"
#include "ir/builder.h"
#include "ir/map.h"
#include "ir/program.h"
#include "ir/query.h"
#include "ir/support/result.h"

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace prunerc::schedule {

/// The statements from the root to one loop or block, both ends included. Borrows from the program.
struct Site {
  std::vector<ir::Stmt> path;

  const ir::Loop* loop() const { return path.back().as<ir::Loop>(); }
  const ir::Block* block() const { return path.back().as<ir::Block>(); }
  /// Loops around it within its nearest enclosing block, outermost first; itself not included.
  std::vector<const ir::Loop*> outer_loops() const;
  /// The nearest enclosing block; null at the outermost level.
  const ir::Block* scope() const;
  /// Depth in the path of the outermost statement: a child of the root if that is a sequence.
  std::size_t outermost_depth() const { return path[0].as<ir::Seq>() != nullptr ? 1 : 0; }
  /// The part of the path from there on.
  Site outermost_statement() const {
    return {{path.begin() + static_cast<std::ptrdiff_t>(outermost_depth()), path.end()}};
  }
};

/// Errors: LoopNotFound, BlockNotFound. Cost: O(size), no expression is visited.
Result<Site> find_loop(const ir::Program& program, ir::LoopId id);
/// The same below any root; an empty path if there is none.
Site find_loop_in(ir::Stmt root, ir::LoopId id);
Result<Site> find_block(const ir::Program& program, ir::BlockId id);

/// The root with the statement at `site` replaced by `to` (null removes it and whatever becomes
/// empty by that). `depth` picks a statement of the path; the last by default.
ir::Stmt replace_at(ir::IrBuilder& b, const Site& site, ir::Stmt to, std::size_t depth);
ir::Stmt replace_at(ir::IrBuilder& b, const Site& site, ir::Stmt to);

/// What is known inside the last statement of the path if it is a loop, around it if it is a block.
ir::VarRanges ranges_at(const ir::Program& program, const Site& site);

/// Keeps every index of a padded domain far from overflow.
inline constexpr int64_t kMaxExtent = int64_t{1} << 40;

std::optional<int64_t> constant(ir::Expr e);
/// Errors: LoopExtentNotConstant.
Result<int64_t> constant_extent(const ir::Loop& loop);
/// Constant and at least 1; in a program with tile parameters, an expression over these. Errors:
/// LoopExtentNotConstant.
Result<void> check_extent(const ir::Loop& loop);
/// No variables and no data: a constant, or an expression over tile parameters.
bool is_closed(ir::Expr e);
bool is_one(ir::Expr e);
/// a*b and ceil(a / b), without factors of 1.
ir::Expr times(ir::IrBuilder& b, ir::Expr x, ir::Expr y);
ir::Expr ceildiv(ir::IrBuilder& b, ir::Expr x, ir::Expr y);
/// x && y, either of which may be null.
ir::Expr conjoin(ir::IrBuilder& b, ir::Expr x, ir::Expr y);

/// Has the program tile parameters? Then it is made from a trace that is legal with its recorded
/// decisions, and every instance that matters is replayed: what cannot be decided for all values is
/// left to the instance (DESIGN.md, D30).
bool is_parametric(const ir::Program& program);
/// What `check` says of a program with numbers; of one with tile parameters nothing.
template <typename Check>
Result<void> on_instance(const ir::Program& program, const Check& check) {
  return is_parametric(program) ? Result<void>() : check();
}

/// Serial and without attributes. Errors: LoopNotSerial, LoopHasAttr.
Result<void> check_serial(const ir::Loop& loop);
/// Only loops, sequences and blocks down to the outermost blocks inside. Errors:
/// LoopHoldsStatement.
Result<void> check_holds_blocks(const ir::Loop& loop);

/// The outermost blocks inside a statement, in program order.
std::vector<const ir::Block*> leaf_blocks(ir::Stmt s);
/// The same, each with the loops between `s` and the block.
struct LeafBlock {
  const ir::Block* block;
  std::vector<const ir::Loop*> loops;
};
std::vector<LeafBlock> leaves(ir::Stmt s);

/// Replaces loop variables below `s`: in extents, bindings and guards; block bodies do not mention
/// them. Changed bindings are simplified under `ranges`, to which inner loops are added on the way.
/// `guard` (null: none) is added to the guard of each outermost block.
ir::Stmt rebind(ir::IrBuilder& b, ir::Stmt s, const ir::VarMap& map, ir::Expr guard,
                ir::VarRanges& ranges);

/// A serial loop with a fresh id around `body`.
ir::Stmt make_loop(ir::IrBuilder& b, const ir::Var* var, ir::Expr extent, ir::Stmt body,
                   ir::LoopId id);
ir::Stmt make_loop(ir::IrBuilder& b, const ir::Var* var, int64_t extent, ir::Stmt body,
                   ir::LoopId id);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_SITE_H_
