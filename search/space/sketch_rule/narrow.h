// Products of narrow operands on a CPU's dot-product instructions; private to rule "tile".
#ifndef PRUNERC_SEARCH_SPACE_SKETCH_RULE_NARROW_H_
#define PRUNERC_SEARCH_SPACE_SKETCH_RULE_NARROW_H_

#include "ir/tensor/intrinsic.h"
#include "search/space/sketch_rule/rule.h"

#include <cstdint>
#include <optional>

namespace prunerc::search {

/// C[.., v] += A[.., k]*B[.., k, v]: lanes along v, groups of k in each.
struct NarrowProduct {
  const ir::TensorIntrinsic* tensor = nullptr;
  int64_t lanes = 1;  // of v in an instruction
  int64_t group = 1;  // of k
  Axis vector, depth;
};

/// The product that a block is and the target's instruction for its types; nullopt if it is none or
/// there is none.
std::optional<NarrowProduct> find_narrow(const schedule::Schedule& schedule, ir::BlockId block,
                                         const ir::Target& target);

/// Lays the operands out for the instruction: whole groups and lanes, zeros beyond the ends; B as
/// [v / lanes, .., k / group, lanes, group], once if it is const; A with k innermost. `consumer` (may be
/// invalid) is the elementwise block that finishes the tiles; one that copies results to where they
/// belong takes its place. The block's loops stay, their extents may grow.
Result<void> pack_narrow(SketchContext& context, ir::BlockId block, const NarrowProduct& product,
                         ir::BlockId* consumer);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_NARROW_H_
