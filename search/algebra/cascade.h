// Rule "cascade": reductions that need an earlier one over the same axis, tile by tile.
#ifndef PRUNERC_SEARCH_ALGEBRA_CASCADE_H_
#define PRUNERC_SEARCH_ALGEBRA_CASCADE_H_

#include "search/algebra/lift.h"

#include <cstdint>
#include <string>

namespace prunerc::search::algebra {

/// Sums over s of exp(x - m)*.., where m is the maximum of x over s: s is cut into tiles, and a tile
/// takes its own maximum n instead of m, which exp(x - m) = exp(x - n)*exp(n - m) allows, as the
/// second factor is the same for the whole tile and leaves its sum. A tile's sums need nothing of
/// other tiles then: attention's online softmax and its split over keys are this. Arguments of exp stay
/// at most 0. Where elements may be hidden by minus infinity, as a constant or from an input that is no
/// factor of a sum, nothing is done: a tile could be hidden whole. `tile` divides the axis.
/// Says in words what was done, "" if there is no such sum.
/// Source: separability as in RedFuser (ASPLOS'26); Milakov and Gimelshein, arXiv 1805.02867.
std::string cascade(Spec& spec, int64_t tile);

/// A divisor of the longest axis that cascade could cut, near to what fits a core's caches and a
/// block's shared memory; 0 if there is none or the axis is short.
int64_t cascade_tile(const Spec& spec);

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_CASCADE_H_
