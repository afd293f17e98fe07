// Rectangular access regions: what a statement reads and writes, in terms of the variables around
// it.
#ifndef PRUNERC_IR_ANALYSIS_REGION_H_
#define PRUNERC_IR_ANALYSIS_REGION_H_

#include "ir/arith/interval.h"
#include "ir/arith/prove.h"
#include "ir/builder.h"

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::ir {

/// A box of a buffer, one range per dimension.
struct BufferRegion {
  BufferId buffer;
  std::vector<Range> box;
};

/// Hull of everything read and written, one entry per buffer, in order of first access.
struct Regions {
  std::vector<BufferRegion> reads, writes;
};

struct RegionOptions {
  /// Conditions around an access (If, Select, block guards) narrow the variables that are relaxed.
  bool use_guards = true;
  /// Boxes are cut to the buffer's shape.
  bool clip = false;
};

/// Regions that `s` touches. Variables of loops inside `s` are relaxed over their extents, all
/// others stay symbolic. A block inside counts with its declared regions, its iteration variables
/// replaced by their bindings. `ranges` describes the variables around s. A subscript that cannot
/// be bounded gives the whole dimension.
Regions touched_regions(IrBuilder& b, Stmt s, const VarRanges& ranges,
                        const RegionOptions& options = {});

/// Declared regions for a block with these iteration variables, init and body: exact points where
/// the subscripts are free of inner loop variables, hulls otherwise. A point that only a condition
/// keeps in range is not clipped. With an init, the buffers that the block writes do not count as
/// read.
Regions infer_block_accesses(IrBuilder& b, std::span<const IterVar> iters, Stmt init, Stmt body,
                             const VarRanges& outer = {});
/// The same as arrays of the builder's arena, ready for a Block description.
struct AccessLists {
  std::span<const Access> reads, writes;
};
AccessLists make_accesses(IrBuilder& b, const Regions& regions);
/// Fills block.reads and block.writes from its iters, init and body.
void rebuild_accesses(IrBuilder& b, Block& block, const VarRanges& outer = {});

/// The declared region of one access of a block in terms of the loops' variables (iters replaced by
/// bindings).
BufferRegion bound_region(IrBuilder& b, const Block& block, const Access& access);

/// Hull of a region over the inner variables (each within its range of `ranges`); the rest stays
/// symbolic. Nullopt for a dimension that cannot be bounded is replaced by the buffer's whole
/// extent.
BufferRegion relax_region(IrBuilder& b, const BufferRegion& region, std::span<const VarId> inner,
                          const VarRanges& ranges);

/// Smallest box around both; the regions must be of one buffer.
BufferRegion hull(IrBuilder& b, const BufferRegion& x, const BufferRegion& y,
                  const VarRanges& ranges);

/// Cut to [0, shape).
BufferRegion clip_to_buffer(IrBuilder& b, const BufferRegion& region, const VarRanges& ranges);

/// Does `outer` contain every element of `inner`, for every binding?
Proof covers(IrBuilder& b, const BufferRegion& outer, const BufferRegion& inner,
             const VarRanges& ranges);
/// Do the boxes share no element, for every binding?
Proof disjoint(IrBuilder& b, const BufferRegion& x, const BufferRegion& y, const VarRanges& ranges);

/// Extent of each dimension for an allocation that holds the region for every binding of the
/// variables in `ranges`: free of variables (constants, or polynomials over tile parameters).
/// Nullopt where no bound is known.
std::vector<std::optional<Expr>> region_extents(IrBuilder& b, const BufferRegion& region,
                                                const VarRanges& ranges);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_REGION_H_
