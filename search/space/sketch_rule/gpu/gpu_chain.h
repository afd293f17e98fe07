// Two matrix products and the rows between them in one kernel.
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_CHAIN_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_CHAIN_H_

#include "search/space/sketch_rule/gpu/gpu_warp.h"

namespace prunerc::search {

/// A product in the shape of a matrix product, by its mapping.
struct ShapedProduct {
  schedule::TensorMapping mapping;
  MatrixProduct product;
};

/// Whether what the block reads is made of what `source` writes.
bool comes_of(const schedule::Schedule& s, ir::BlockId block, ir::BlockId source);

/// Whether `second` multiplies rows that come of the result of `first`.
bool is_chained(const schedule::Schedule& schedule, const ShapedProduct& first,
                const ShapedProduct& second);

/// Both products and what is between them, also where later kernels read a value of each row; `bulk`: beside warpgroups
/// the copy engine brings what tiles of rows are multiplied by. Errors: Unsupported where rows do not fit in shared
/// memory or something else reads them; BulkForm where such tiles are no boxes; those of the primitives.
Result<void> gpu_chain(SketchContext& context, ShapedProduct first, ShapedProduct second,
                       WarpUnit unit, bool bulk);

/// gpu_chain_tiles.cc: keys of attention over whole rows become tiles, as gpu_chain_online wants them. Errors: Unsupported
/// where there are no two products and no maximum over an axis that tiles divide, or where the program has tiles. The
/// schedule is then as it was.
Result<void> tile_keys(SketchContext& context);

/// gpu_chain_online.cc: the same of a tile of keys and of what combines tiles, in one pass over them that keeps rows in
/// registers. Errors: Unsupported where rows, keys or columns are no whole tiles of a 16-bit instruction; those of the
/// primitives.
Result<void> gpu_chain_online(SketchContext& context, ShapedProduct first, ShapedProduct second);

/// The product reads its left factor where a stage made it, rows by columns; its copy vanishes.
Result<void> read_where_made(SketchContext& context, const schedule::TensorMapping& mapping,
                             MatrixProduct* product);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_GPU_CHAIN_H_
