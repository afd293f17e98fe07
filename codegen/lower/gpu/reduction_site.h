// A reduction whose iterations are threads: where it stands, and nests of blocks built there.
#ifndef PRUNERC_CODEGEN_LOWER_GPU_REDUCTION_SITE_H_
#define PRUNERC_CODEGEN_LOWER_GPU_REDUCTION_SITE_H_

#include "ir/builder.h"
#include "ir/map.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::codegen {

/// One block with its loops. Borrows from the program.
struct ReductionSite {
  std::vector<const ir::Loop*> path;
  const ir::Block* block = nullptr;
  std::size_t first = 0;                 // position in path of the outermost reduction loop
  std::vector<const ir::Loop*> threads;  // of the reduction
  std::vector<const ir::Loop*> spatial;  // inside of path[first]
  ir::Expr outer_guard;                  // conjuncts of the guard that know no reduction loop

  /// One axis of threads that fills warps, or a power of two within one: partial results stay in
  /// registers and travel by shuffles.
  bool by_warps() const;
  std::vector<int64_t> extents() const;  // of threads
  std::vector<ir::Expr> lanes() const;   // variables of threads
};

/// The block's spatial iterations in terms of the loops; other variables stay as they are.
ir::VarMap spatial_bindings(const ir::Block& block);

/// `body` over the site's loop variables as a block in its spatial loops and, if there are threads,
/// loops over these; all loops and variables are fresh. `attr` goes to the outermost loop.
ir::Stmt nest_at(ir::IrBuilder& b, const ReductionSite& site, const std::string& name,
                 ir::Stmt body, const std::vector<const ir::Loop*>& threads,
                 std::optional<ir::Attr> attr = std::nullopt);

/// The rounds in which partial results are combined; `combine` makes the statement that joins what
/// lies at indices `other`, in front of those of the result, to what lies at `mine`.
/// by_warps(): each lane with the one `step` further on, half the distance every time, by shuffles.
/// Otherwise: the first half of what is left with the second, in shared memory.
using CombineAt =
    std::function<ir::Stmt(const std::vector<ir::Expr>& mine, const std::vector<ir::Expr>& other)>;
std::vector<ir::Stmt> combine_rounds(ir::IrBuilder& b, const ReductionSite& site,
                                     const CombineAt& combine);

/// The site's block with one more spatial iteration for each thread loop, without init; `body`
/// makes its body of their variables.
ir::Stmt block_with_lanes(ir::IrBuilder& b, const ReductionSite& site,
                          const std::function<ir::Stmt(const std::vector<ir::Expr>& lanes)>& body);

/// What a reduction becomes: statements around its outermost loop, and its block.
struct SplitReduction {
  std::vector<ir::Stmt> before, after;
  ir::Stmt block;
};

/// A reduction into several buffers; nullopt if how partial results combine is not known.
std::optional<SplitReduction> split_tuple(ir::IrBuilder& b, const ReductionSite& site);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_GPU_REDUCTION_SITE_H_
