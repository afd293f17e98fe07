// Copies of a box between a matrix in global memory and a tile in shared memory, as one TMA
// instruction makes them.
#ifndef PRUNERC_IR_TENSOR_BULK_COPY_H_
#define PRUNERC_IR_TENSOR_BULK_COPY_H_

#include "ir/arith/interval.h"
#include "ir/builder.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/tensor/pixel_window.h"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

namespace prunerc::ir {

/// A loop over the rows of a box with this attribute may be done by the copy engine. It keeps its
/// scalar meaning, as a tensor loop does.
inline constexpr std::string_view kBulkCopyAttr = "bulk_copy";
/// Addresses and distances that the engine deals with are multiples of this. Units: bytes.
inline constexpr int64_t kBulkAlignment = 16;
/// A swizzle repeats after as many rows of its width: what it permutes must start at a multiple.
inline constexpr int64_t kSwizzleRows = 8;
/// Of the widths of a swizzle, which its panels have, the widest that divides rows of so many bytes; 0 if none does.
constexpr int64_t panel_of(int64_t row_bytes) {
  for (const int64_t bytes : {128, 64, 32}) {
    if (row_bytes > 0 && row_bytes % bytes == 0) return bytes;
  }
  return 0;
}

bool is_bulk_copy(const Loop& loop);
/// Is s one, or has it one in it?
bool holds_bulk_copy(Stmt s);

/// to[.., i0 + i, j0 + j] = from's element (y + i, x + j) for i below rows and j below columns, 0
/// where that lies outside of the matrix. Where there is a window, rows are its pixels instead: y is
/// nothing, and outside of an image there are zeros.
struct BulkCopy {
  BufferId to, from;
  std::vector<Expr> base;  // indices of to[.., i0, j0]
  int64_t rows = 1, columns = 1;
  Expr y, x;
  /// The buffer `from` as a matrix; in elements.
  int64_t matrix_rows = 1, matrix_columns = 1, pitch = 1;
  std::optional<PixelWindow> window;
};

/// Recognises a loop nest around one store, before blocks are lowered (one block) or after.
/// `ranges` knows the variables outside. Errors: BulkForm.
Result<BulkCopy> match_bulk_copy(IrBuilder& b, const Loop& nest, const VarRanges& ranges);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_TENSOR_BULK_COPY_H_
