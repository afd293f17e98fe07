// Loops around products of matrix tiles (AMX) that keep their sums in tile registers: which ones can, and
// what they compute then. IR alone.
#ifndef PRUNERC_CODEGEN_CPU_TILE_REGION_H_
#define PRUNERC_CODEGEN_CPU_TILE_REGION_H_

#include "ir/arith/interval.h"
#include "ir/arith/linear.h"
#include "ir/builder.h"
#include "ir/support/result.h"
#include "ir/tensor/intrinsic.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace prunerc::codegen {

inline constexpr int kNumTileRegisters = 8;
/// Sums that a region keeps: two registers are left for the factors.
inline constexpr std::size_t kMostTileSums = 6;

/// The size of a tile register; without rows it is not in use.
struct TileShape {
  int rows = 0;
  int bytes = 0;  ///< of a row
  bool operator==(const TileShape&) const = default;
};

/// A tile in memory.
struct TilePlace {
  ir::BufferId buffer;
  ir::Linear offset;        ///< of its first element. Units: elements of the buffer
  ir::Expr start;           ///< the same as an expression
  int64_t pitch_bytes = 0;  ///< from a row to the next
};

/// sums[sum] += operands[a] * operands[b].
struct TileProduct {
  const ir::TensorIntrinsic* tensor = nullptr;
  std::size_t sum = 0, a = 0, b = 0;
};

/// A product, or a serial loop around others.
struct TileItem {
  const ir::Loop* loop = nullptr;  ///< null: a product
  std::vector<TileItem> body = {};
  TileProduct product = {};
};

/// Products with all unrolled loops written out. Its sums are loaded once before it and stored once
/// behind it: they are apart from each other, and no loop inside moves them.
struct TileRegion {
  TileShape sum, a, b;  ///< of all products
  std::vector<TilePlace> sums, operands;
  std::vector<TileItem> items;
  bool starts_at_zero = false;  ///< what memory holds of the sums before it does not matter
};

/// Who runs the parallel loops of a function.
enum class ParallelLoops {
  kTasks,   ///< functions of their own
  kItself,  ///< serially, as it is a task
};

struct TileRegionOptions {
  int64_t most_copies = 1;  ///< of one statement that unrolled loops may make
  ParallelLoops parallel = ParallelLoops::kTasks;
};

/// The region that the loop is; nullopt if it holds anything but products of tiles and loops that run at
/// least once, or if its sums have no place of their own that is proved. `b` makes and owns its nodes.
std::optional<TileRegion> find_tile_region(ir::IrBuilder& b, const ir::Loop& loop,
                                           const ir::VarRanges& ranges,
                                           const TileRegionOptions& options);

/// Does the statement store 0 in all elements of the region's sums, and do nothing else? Then they need
/// not be loaded, and it need not run.
bool fills_sums_with_zero(ir::IrBuilder& b, ir::Stmt s, const TileRegion& region,
                          const ir::VarRanges& ranges);

/// The product that a nest with the attribute of such an intrinsic is. Errors: TensorMismatch.
Result<TileRegion> tile_region_of(ir::IrBuilder& b, const ir::Loop& nest,
                                  const ir::TensorIntrinsic& tensor, const ir::VarRanges& ranges);

/// Is there a product of tiles in `s`, outside of what others run?
bool has_tile_products(ir::Stmt s, ParallelLoops parallel);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_TILE_REGION_H_
