// How well an order of measured candidates is: the best among its first ones.
#ifndef PRUNERC_TESTS_BENCH_DRAFT_ORDER_H_
#define PRUNERC_TESTS_BENCH_DRAFT_ORDER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::bench {

/// Best measured time / best among the `k` that stand first by `predicted`, at most 1: mean over the
/// seeds, each of which breaks ties anew.
double best_of_first(std::span<const double> measured, std::span<const double> predicted,
                     std::size_t k, std::span<const uint64_t> seeds);

/// The same of `k` drawn at random: its expected value, from the order statistics.
double best_of_drawn(std::span<const double> measured, std::size_t k);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_DRAFT_ORDER_H_
