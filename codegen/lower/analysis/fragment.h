// Fragments: registers of a warp that tensor instructions read and write, spread over its lanes.
#ifndef PRUNERC_CODEGEN_LOWER_ANALYSIS_FRAGMENT_H_
#define PRUNERC_CODEGEN_LOWER_ANALYSIS_FRAGMENT_H_

#include "ir/builder.h"
#include "ir/support/result.h"
#include "ir/tensor/intrinsic.h"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace prunerc::codegen {

/// How a buffer is spread: it consists of tiles, and element (i, j) of a tile is in the lane and
/// register that `map` sends to (i, j). Registers of a tile are neighbours; tiles follow each other
/// in row-major order.
struct Fragment {
  ir::IndexMap map = ir::IndexMap::identity(2);  // (lane, register) -> (i, j)
  int lanes = 32;
  int registers = 1;
  std::array<int64_t, 2> tile = {1, 1};
  std::array<int, 2> dims = {0, 1};  // of the buffer, for i and j

  bool operator==(const Fragment&) const = default;
};

using Fragments = std::map<ir::BufferId, Fragment>;

/// The intrinsic that a loop stands for, if it is one that a warp runs together.
const ir::TensorIntrinsic* warp_intrinsic(const ir::Loop& loop);

/// The operands of scope local of all such loops below s, and what is copied element by element to
/// or from them into other registers, but for values of rows, which have no subscript along j. Errors: Unsupported (an operand that two instructions spread
/// differently), TensorMismatch.
Result<Fragments> find_fragments(ir::IrBuilder& b, ir::Stmt s);

/// The number of neighbouring elements along j that follow each other in the registers of each
/// lane.
int64_t contiguous_registers(const Fragment& fragment);

/// Are these indices those of a value of the row that a fragment is accessed at?
bool is_row_value(std::span<const ir::Expr> indices, const Fragment& fragment,
                  std::span<const ir::Expr> fragment_indices);

/// Lanes that have elements of one row, in fragments whose lanes have two rows of a tile each.
inline constexpr int64_t kLanesOfRow = 4;
/// Rows of such a tile, and those of them that one lane has.
inline constexpr int64_t kRowsOfTile = 16, kRowsOfLane = 2;
/// Is the fragment spread as the result of m16n8k16 is: pairs in the rows lane / 4 and lane / 4 + 8?
bool has_row_pairs(const Fragment& fragment);

/// Tile (over i and j) and register of the element at `indices`, which are those of thread `lane`
/// and register `reg` of some tile; null if that cannot be shown.
struct FragmentPlace {
  std::array<ir::Expr, 2> tile;
};
std::optional<FragmentPlace> place_in_fragment(ir::IrBuilder& b, const Fragment& fragment,
                                               std::span<const ir::Expr> indices, ir::Expr lane,
                                               ir::Expr reg, const ir::VarRanges& ranges);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_ANALYSIS_FRAGMENT_H_
