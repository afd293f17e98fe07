// Products of narrow operands on a CPU's dot-product instructions and matrix tiles; private to rule "tile".
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
  int64_t group = 1;  // of k in a lane
  int64_t step = 1;   // of k in an instruction
  Axis vector, depth;
  // Of an instruction on matrix tiles (amx.cc):
  int64_t rows = 0;  // of C and A, along an axis that B does not have; 0: it is none of those
  Axis row;
  bool copies_rows = false;  // A is copied before it is padded, with k innermost
  bool is_tile() const { return rows > 0; }
};

/// Where the block reads the one operand that moves along `var`; -1 unless it is one.
int moving_operand(const ir::Block& block, ir::VarId var);
/// The same of the one that does not, which all elements along `var` share.
int shared_operand(const ir::Block& block, ir::VarId var);

/// The axes of the product that a block is, without an instruction; nullopt if it is none.
std::optional<NarrowProduct> find_product(const schedule::Schedule& schedule, ir::BlockId block);
/// The same with the target's dot-product instruction for its types; nullopt if there is none.
std::optional<NarrowProduct> find_narrow(const schedule::Schedule& schedule, ir::BlockId block,
                                         const ir::Target& target);
/// The same with the target's instruction on matrix tiles; nullopt if there is none of these sizes.
std::optional<NarrowProduct> find_amx(const schedule::Schedule& schedule, ir::BlockId block,
                                      const ir::Target& target);

/// Lays the operands out for the instruction: whole steps, lanes and rows, zeros beyond the ends; B as
/// [v / lanes, .., k / group, lanes, group], once if it is const; A with k innermost. `consumer` (may be
/// invalid) is the elementwise block that finishes the tiles; one that copies results to where they
/// belong takes its place. The block's loops stay, their extents may grow.
Result<void> pack_narrow(SketchContext& context, ir::BlockId block, const NarrowProduct& product,
                         ir::BlockId* consumer);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_SKETCH_RULE_NARROW_H_
