// New nests of one block, and accesses that change their buffer or subscripts.
#ifndef PRUNERC_SCHEDULE_REWRITE_NEST_H_
#define PRUNERC_SCHEDULE_REWRITE_NEST_H_

#include "ir/arith/interval.h"
#include "ir/builder.h"
#include "schedule/primitive.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace prunerc::schedule {

/// A block under one serial loop per variable, all new. `body` gets the variables.
struct NewNest {
  ir::Stmt stmt;
  std::vector<Output> outputs;  // the block, then its loops
};
using NestBody = std::function<ir::Stmt(std::span<const ir::Expr> vars)>;
NewNest make_nest(ir::IrBuilder& b, std::string_view name, std::span<const ir::Expr> extents,
                  const NestBody& body);
NewNest make_nest(ir::IrBuilder& b, std::string_view name, std::span<const int64_t> extents,
                  const NestBody& body);

/// `s` with every access of `buffer`, and declared regions, moved to other indices: `f` gets the
/// old ones and the ranges of the variables there.
using IndexFn =
    std::function<std::vector<ir::Expr>(std::span<const ir::Expr>, const ir::VarRanges&)>;
ir::Stmt move_accesses(ir::IrBuilder& b, ir::Stmt s, ir::BufferId from, ir::BufferId to,
                       const IndexFn& f);

/// Replaces every load of `buffer` by make(indices).
ir::Expr replace_loads(ir::IrBuilder& b, ir::Expr e, ir::BufferId buffer,
                       const std::function<ir::Expr(std::span<const ir::Expr>)>& make);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_NEST_H_
