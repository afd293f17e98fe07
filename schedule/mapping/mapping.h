// All ways to compute a block with a tensor intrinsic, best first, and their application.
#ifndef PRUNERC_SCHEDULE_MAPPING_MAPPING_H_
#define PRUNERC_SCHEDULE_MAPPING_MAPPING_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/tensor/intrinsic.h"
#include "schedule/schedule.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::schedule {

/// Which variables of a block become which variable of an intrinsic. Positions are those of the
/// block's iteration variables and of the description's.
struct TensorMapping {
  std::string intrinsic;
  /// For each operand of the intrinsic (output first): the block's read that takes its part; -1 for
  /// the output.
  std::vector<int> reads;
  /// For each variable of the intrinsic: the block's variables fused into it, outermost first.
  std::vector<std::vector<int>> fused;
  /// Variables that stay loops around the intrinsic, outermost first.
  std::vector<int> outer;
  /// Extents of the fused variables, and the same rounded up to tiles.
  std::vector<int64_t> extents, padded;
  /// Part of the products that the intrinsic computes which is wanted, in (0, 1].
  double useful = 1;
  /// Elements of the copies of all operands, padding included.
  int64_t copied_elems = 0;
  bool operator==(const TensorMapping&) const = default;
};

/// "C <- m: (n, h, w), k: (kh, kw, ci), outer: (), 75% useful".
std::string to_string(const ir::Program& program, ir::BlockId block, const TensorMapping& mapping);

/// Every mapping of a sum of products in its canonical nest: which operand is which, and which of the
/// variables that fit (same operands, same kind) are fused. Ranked by useful products, then by what
/// is copied, then by fewer loops outside. Errors: BlockNotFound, BlockNested, TensorUnknown,
/// TensorNoMapping.
Result<std::vector<TensorMapping>> tensor_mappings(const ir::Program& program, ir::BlockId block,
                                                   std::string_view intrinsic);

/// Rewrites the schedule accordingly: operands are copied into the shape of a matrix product,
/// padded and laid out as the intrinsic wants them, the block's variables fused, tiled, tensorized.
/// Returns the loops around the intrinsic, outermost first: those outside, then tiles in the order
/// of the intrinsic's variables. Errors: those of the primitives; the schedule is then as it was.
Result<std::vector<ir::LoopId>> apply_mapping(Schedule& schedule, ir::BlockId block,
                                              const TensorMapping& mapping);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_MAPPING_MAPPING_H_
