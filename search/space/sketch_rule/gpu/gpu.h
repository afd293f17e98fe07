// What the sketch rules for GPUs share: structural alternatives, and the ways to give a block a
// kernel.
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_H_

#include "search/space/sketch_rule/gpu/gpu_matrix.h"
#include "search/space/sketch_rule/gpu/gpu_warp.h"
#include "search/space/sketch_rule/rule.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::search {

/// A block's tile under the rule "wgmma".
struct WgmmaTile {
  int64_t warpgroups = 0;  // that compute, 64 rows each; 0: the rule is not taken
  int64_t columns = 128;
  bool bulk = true;    // by the copy engine, where rows allow it
  bool parts = false;  // of the sum, in blocks of their own
};

/// Which structural alternative a GPU sketch takes.
struct GpuVariant {
  std::string name;
  bool inline_stages = true;  // elementwise stages into their readers, padding too
  bool shared = true;  // operands of a tile through shared memory, rows of a matrix by all threads
  bool outer_row = false;          // tiles along the outermost axis with reuse, not the innermost
  bool threads_share_rows = true;  // the threads of a block reduce a row together
  bool fuse_rows = true;           // a chain of stages in one kernel, a row for each block
  int mapping = 0;                 // products by tensor instructions: the n-th best mapping, from 1
  WgmmaTile wgmma = {};            // of matrix products on Hopper
  bool split_reduction = false;    // of these: parts of the sum in blocks of their own
  bool staged = false;             // results go through shared memory, out of it in vectors
  bool chain = false;              // of two products and the rows between them one kernel
  WarpUnit unit = WarpUnit::kTensor;  // what multiplies in a chain
  bool bulk = false;                  // in a chain of warpgroups the copy engine brings tiles
  bool online = false;                // a chain in one pass over tiles, rows in registers
  bool swizzled = false;              // rows in shared memory swizzled, not lengthened
  bool turns_bytes = true;            // bytes across K, on their way into shared memory
  bool parts = false;                 // of few long rows, in blocks of their own
};
std::vector<GpuVariant> gpu_variants();

/// Every block of the program gets a kernel; blocks that no rule fits run on one thread.
/// Errors: Unsupported if the variant asks for what this program has no use for.
Result<void> apply_gpu_variant(SketchContext& context, const GpuVariant& variant);

/// gpu_tile.cc: multi-level tiling of a reduction with reused operands; `consumer` (may be invalid)
/// is the elementwise block that takes its tiles out of registers.
Result<void> gpu_tile(SketchContext& context, ir::BlockId block, ir::BlockId consumer,
                      const GpuVariant& variant);
bool can_gpu_tile(const schedule::Schedule& schedule, ir::BlockId block);
/// Whether its operands are read so often that reading them directly is no alternative.
bool must_share_operands(const schedule::Schedule& schedule, ir::BlockId block);

/// gpu_wgmma.cc: products of f16, bf16, i8 or (as tf32) f32 matrices by warpgroups, on sm_90a; `consumer` as above.
Result<void> gpu_wgmma(SketchContext& context, ir::BlockId block, ir::BlockId consumer,
                       const WgmmaTile& tile);
/// The same of a product that the mapping gave its shape.
Result<void> gpu_wgmma(SketchContext& context, const schedule::TensorMapping& mapping,
                       MatrixProduct product, const WgmmaTile& tile);
bool has_wgmma(const ir::Target& target);
/// Whether it is a product of two matrices as the instruction takes them.
bool can_gpu_wgmma(const SketchContext& context, ir::BlockId block);

/// gpu_rows.cc: a chain of stages and reductions whose rows belong to one block of threads each.
Result<void> gpu_rows(SketchContext& context, const std::vector<ir::BlockId>& blocks,
                      const GpuVariant& variant);
/// A sum of which neighbours in memory are different results.
bool is_along_columns(const BlockFacts& facts);
/// Neighbours along the variable that one access of 16 bytes has, as far as rows are made of them.
int64_t access_width(const schedule::Schedule& schedule, const ir::Block& block, ir::VarId var);
/// One block by itself: its spatial loops over blocks and threads, vectors of neighbours; one
/// thread if it has none that are independent.
Result<void> gpu_bind(SketchContext& context, ir::BlockId block);

/// gpu_parts.cc: a kernel for the parts of long rows, which a reduction of few rows then adds up; returns the parts'
/// block. Errors: Unsupported where rows are many or short.
Result<ir::BlockId> gpu_parts(SketchContext& context, ir::BlockId block);

/// gpu_transposition.cc: tiles of an elementwise block that reads across what it writes, through shared memory.
Result<void> gpu_transposition(SketchContext& context, ir::BlockId block);

/// gpu_tensor.cc: a matrix product by tensor instructions of a warp, operands in pipelines through
/// shared memory.
Result<void> gpu_tensor(SketchContext& context, const schedule::TensorMapping& mapping,
                        MatrixProduct product, const GpuVariant& variant);
/// Intrinsics for products that the target has and its numbers allow, in order of preference.
std::vector<std::string_view> tensor_products(const ir::Target& target);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_H_
