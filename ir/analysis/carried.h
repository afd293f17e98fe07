// Do different iterations touch one element? Exact for affine subscripts; dependences that a loop
// carries.
#ifndef PRUNERC_IR_ANALYSIS_CARRIED_H_
#define PRUNERC_IR_ANALYSIS_CARRIED_H_

#include "ir/analysis/dependence.h"
#include "ir/analysis/region.h"
#include "ir/arith/prove.h"

#include <cstdint>
#include <vector>

namespace prunerc::ir {

/// 0 <= var < extent.
struct Axis {
  const Var* var;
  Expr extent;
};

/// An access that happens at every point of `chain` and `inner` where the conditions hold. What the
/// region mentions besides is a constant of the question.
struct Touch {
  std::vector<Axis> chain;  // what distinguishes iterations
  std::vector<Axis> inner;
  std::vector<Expr> conditions;
  BufferRegion region;
};

/// Which pairs of chain points count: different ones; those where x's comes lexicographically
/// before y's.
enum class PointOrder : uint8_t { kDifferent, kBefore };

/// Is there a pair of points at which x and y touch one element of their buffer? Chains have the
/// same length. kYes only if regions are single elements and conditions are affine, as declared
/// regions may hold more than is touched. Cost: one elimination per chain axis (feasible.h).
Proof share_element(const Touch& x, const Touch& y, PointOrder order, const VarRanges& outside,
                    const ProveOptions& options = {.max_points = 1'000'000});

/// An iteration of the loop touches what an earlier one has touched, one of them writing.
struct CarriedDependence {
  BlockId from, to;  // of the earlier and of the later iteration
  BufferId buffer;
  DepKind kind = DepKind::kReadAfterWrite;
  Proof proof = Proof::kUnknown;  // kYes or kUnknown; what is kNo is not listed
};
/// Scratch that each iteration writes before it reads counts as well: whoever gives iterations
/// copies of their own knows.
std::vector<CarriedDependence> carried_dependences(const Program& program, const LoopIndex& index,
                                                   LoopId loop);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_CARRIED_H_
