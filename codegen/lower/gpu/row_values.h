// Values of rows of fragments: in every lane that has elements of the row, two of a tile's rows in each.
#ifndef PRUNERC_CODEGEN_LOWER_GPU_ROW_VALUES_H_
#define PRUNERC_CODEGEN_LOWER_GPU_ROW_VALUES_H_

#include "codegen/lower/analysis/fragment.h"
#include "ir/builder.h"

#include <cstddef>
#include <map>
#include <span>
#include <vector>

namespace prunerc::codegen {

/// A loop nest down to what it repeats.
struct Nest {
  std::vector<const ir::Loop*> loops;  // outermost first
  std::vector<ir::Expr> conditions;
  ir::Stmt body;
};
Nest nest_of(ir::Stmt s);

/// Registers that have one value for each row of a fragment.
struct RowBuffer {
  std::size_t dim = 0;    // along rows
  ir::BufferId in_lanes;  // what takes their place: [32 lanes, other dimensions.., tiles, 2]
};
using RowBuffers = std::map<ir::BufferId, RowBuffer>;

/// Registers into which columns of fragments are reduced, and what meets such values in a statement at the same row. Errors:
/// Unsupported where the fragment has no pairs in two rows of a lane, or rows are no whole tiles.
Result<RowBuffers> find_row_buffers(ir::IrBuilder& b, const Fragments& fragments, ir::Stmt body);

/// Where a lane has the value of one of its rows.
struct RowPlace {
  ir::Expr lane, tile, half;
};
/// Subscripts in `in_lanes`.
std::vector<ir::Expr> place_of_row(std::span<const ir::Expr> indices, std::size_t dim,
                                   const RowPlace& place);

/// May each statement of the nest's sequence run in loops of its own, one after the other? What one of them stores and
/// another one touches is the same iteration's.
bool can_part(const Nest& nest);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_GPU_ROW_VALUES_H_
