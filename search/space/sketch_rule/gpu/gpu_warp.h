// A block's tile of a matrix product by its warps: what rules "tensor" and "chain" share.
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_WARP_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_WARP_H_

#include "search/space/sketch_rule/gpu/gpu_matrix.h"
#include "search/space/sketch_rule/rule.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::search {

inline constexpr int64_t kWarpLanes = 32;
inline constexpr int64_t kGroupWarps = 4;  // of a warpgroup
/// Of a vector that a thread fetches.
inline constexpr int64_t kFetchBytes = 16;

/// A dimension cut for blocks, warps and instructions.
struct WarpCut {
  int64_t unit = 1;  // of the instructions that are loaded for at once
  schedule::Int blocks = -1, warps = 1, tiles = 1;  // one may be inferred: -1
  schedule::Int of_warp = -1;                       // tiles * unit
  std::vector<ir::LoopId> loops;
};

/// What multiplies: tensor instructions, each lane for itself, or tensor instructions of a warpgroup.
enum class WarpUnit : uint8_t { kTensor, kLanes, kWarpgroup };
/// How rows of an operand's tile avoid each other's banks: longer ones, or pieces in other places.
enum class RowSpread : uint8_t { kPadded, kSwizzled };

/// By tensor instructions m = (block, warp, tile, 16), n = (block, warp, tile, pair, 8), k = (iteration, step, 16);
/// by lanes m = (block, warp, tile), n = (block, tile, lane), k = (iteration, step);
/// by a warpgroup's instructions as by a warp's, with warpgroups (thread.z) for warps and 64 rows, without pairs; both
/// operands are read where they were fetched, in swizzled panels.
class WarpProduct {
 public:
  WarpProduct(SketchContext& context, MatrixProduct* product, RowSpread spread,
              WarpUnit unit = WarpUnit::kTensor);

  /// What the cuts' decisions make together.
  Result<void> combine_cuts();
  /// Cuts m, n and k of the product; their loops stand under `outside` in the order of a block's tile: the
  /// loops of the iteration are fused, those of the warps are `warp`.
  Result<void> cut(const std::vector<ir::LoopId>& outside);
  /// Operands of an instruction have registers of their own, in the loop over steps.
  Result<void> load_registers();
  /// All threads of the block fetch an operand's tile under `loop` together, a vector of `width` elements each, or of what
  /// turns a block each.
  Result<void> fetch(const MatrixOperand& operand, ir::LoopId loop, schedule::Int width);
  /// The copy engine brings it, for products of warpgroups. Errors: BulkForm.
  Result<void> fetch_in_bulk(const MatrixOperand& operand, ir::LoopId loop);
  /// The most elements that a vector of a fetch can have.
  int64_t widest(const MatrixOperand& operand) const;
  /// Rows of the buffer that `writer` writes are where ldmatrix meets no bank twice.
  Result<void> spread_rows(const MatrixOperand& operand, ir::BlockId writer);
  /// Registers start at zero in front of the iterations; then the nest becomes the instruction, or what a lane does.
  Result<void> multiply_tile();
  /// By one instruction per operand tile, where there is one.
  Result<void> fill_registers();

  /// Factors of a split that count the block's warps: [warps], or [warpgroups, warps of one]; what binds such loops, of
  /// which `first` is the outermost.
  std::vector<schedule::Int> warp_factors() const;
  Result<void> bind_warps(const std::vector<ir::LoopId>& loops, std::size_t first);

  /// The lanes of a warp take out what they hold: the tile's loops, which of them run along m and n.
  Result<void> leave_registers(const std::vector<ir::LoopId>& loops, std::size_t along_m,
                               std::size_t along_n);

  std::array<int64_t, 3> tile = {1, 1, 1};  // of the instruction: m, n, k; 1 for lanes
  WarpCut m, n;
  std::vector<ir::LoopId> k;  // iterations, instructions of one iteration, the instruction's own
  schedule::Int steps = 1, warps = 1;  // warps: or warpgroups
  ir::LoopId warp;
  bool a_is_made = false;  // A is the instruction's own registers already

 private:
  struct Registers {
    std::vector<ir::LoopId> loops;
    std::string load;
  };
  Result<void> cut_for_lanes(const std::vector<ir::LoopId>& outside);
  Result<void> fetch_turned(const MatrixOperand& operand, const std::vector<ir::LoopId>& loops);
  Result<void> swizzle(const MatrixOperand& operand, ir::BlockId writer, int64_t unit);
  /// Of loops over `warps`.
  const char* axis() const { return unit_ == WarpUnit::kWarpgroup ? "thread.z" : "thread.y"; }
  const ir::Buffer& buffer_of(const MatrixOperand& operand) const;

  SketchContext& context_;
  schedule::Schedule& s_;
  MatrixProduct& p_;
  RowSpread spread_;
  WarpUnit unit_;
  ir::LoopId lane_;
  std::array<Registers, 2> registers_;  // of A and B
};

/// Rows of bytes that threads turn at a time.
inline constexpr int64_t kTurnedRows = 16;
/// A copy that turns bytes: `threads` have a block of 4 x 4 each, `outer` is all else.
struct TurningLoops {
  ir::LoopId outer, threads;
};
/// Cuts the copy's loops [outside.., rows, k] for so many threads.
Result<TurningLoops> cut_to_turn(SketchContext& context, const MatrixOperand& operand,
                                 const std::vector<ir::LoopId>& loops, int64_t num_threads);

/// Invalid for no loops.
Result<ir::LoopId> fuse_all(SketchContext& context, const std::vector<ir::LoopId>& loops);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_WARP_H_
