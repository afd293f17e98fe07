// What a program takes at least if its nests run one after the other: how forms are ranked before
// one is tuned.
#ifndef PRUNERC_SEARCH_ALGEBRA_ROOFLINE_H_
#define PRUNERC_SEARCH_ALGEBRA_ROOFLINE_H_

#include "ir/program.h"
#include "ir/target.h"

namespace prunerc::search::algebra {

/// Units: operations, bytes, ns.
struct Roofline {
  double flops = 0;     // float operations; exp and its like count kSpecialFlops
  double bytes = 0;     // that nests read and write, each buffer once a nest
  double limit_ns = 0;  // sum over nests of the larger of both at the target's rates
};
inline constexpr double kSpecialFlops = 10;

/// Of an unscheduled program of constant extents. An elementwise nest that alone reads what the nest
/// before wrote counts as part of it. Where a buffer lies goes by its size: parameters, and what is
/// computed of constants ahead, in memory, other intermediates in the cache that holds them. Without
/// measured rates those of a usual machine.
Roofline roofline(const ir::Program& program, const ir::Target& target);

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_ROOFLINE_H_
