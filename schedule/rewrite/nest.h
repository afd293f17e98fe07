// Whole nests of one block: the plain form that layouts and padding rebuild, and its making.
#ifndef PRUNERC_SCHEDULE_REWRITE_NEST_H_
#define PRUNERC_SCHEDULE_REWRITE_NEST_H_

#include "ir/builder.h"
#include "schedule/legality/dataflow.h"
#include "schedule/primitive.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::schedule {

/// "" if the block's loops are its iteration variables, one each, plain, of the same constant
/// extents, straight around it from the outermost statement on, without a guard; else what they are
/// not.
std::string plain_nest_fault(const ir::Program& program, const LeafBlock& leaf);
/// The first loop of such a nest, or the block if it has none.
ir::Stmt top_of(const LeafBlock& leaf);

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

/// Constant shape of a buffer; empty optional if it has another.
std::optional<std::vector<int64_t>> constant_shape(const ir::Buffer& buffer);

/// Every loop below `root` that stands for a tensor intrinsic still computes it. Errors:
/// TensorMismatch, TensorUnknown.
Result<void> check_tensors(const ir::Program& program);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_NEST_H_
