// Ordered factorisations: how many there are, and a uniformly random one.
#ifndef PRUNERC_SCHEDULE_TRACE_FACTOR_H_
#define PRUNERC_SCHEDULE_TRACE_FACTOR_H_

#include "ir/support/rng.h"
#include "ir/tile_space.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace prunerc::schedule {

using ir::divisors;
using ir::prime_factors;

/// Number of ways to write `extent` as an ordered product of `num_tiles` positive factors of which
/// the last is at most `max_innermost` (0: no cap); saturates at INT64_MAX.
int64_t count_perfect_tiles(int64_t extent, int num_tiles, int64_t max_innermost);
/// One of them, each with equal probability. There must be one.
std::vector<int64_t> random_perfect_tile(int64_t extent, int num_tiles, int64_t max_innermost,
                                         Rng& rng);

/// The same for tiles of which those from `partition` on have a product that `inner_factor`
/// divides; inner_factor must divide extent.
int64_t count_partitioned_tiles(int64_t extent, int num_tiles, int partition, int64_t inner_factor);
std::vector<int64_t> random_partitioned_tile(int64_t extent, int num_tiles, int partition,
                                             int64_t inner_factor, Rng& rng);

/// The tilings of `num_tiles` levels that cover `extent`. Kept for the next caller: making one for
/// a long loop takes much longer than drawing from it. Threads: any.
std::shared_ptr<const ir::TileSpace> covering_tiles(int64_t extent, int num_tiles,
                                                    int64_t max_innermost);
/// Inner levels of a tiling that covers `extent`: the outermost level, ceildiv(extent, product of
/// these), is left to split's -1. Whether they belong to the space of `num_tiles` levels in all
/// (ir::TileSpace, kCovering). O(levels).
bool fits_covering(int64_t extent, int num_tiles, int64_t max_innermost,
                   std::span<const int64_t> inner);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_TRACE_FACTOR_H_
