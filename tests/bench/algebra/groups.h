// The groups of rows of `bench algebra`.
#ifndef PRUNERC_TESTS_BENCH_ALGEBRA_GROUPS_H_
#define PRUNERC_TESTS_BENCH_ALGEBRA_GROUPS_H_

#include "tests/bench/report.h"

#include <vector>

namespace prunerc::bench {

/// Which planted forms are found, which are found where there is none, and how long that takes.
std::vector<Row> find_rows();
/// Wrong forms beside right ones: what `check_form` says of each, and how often a single test at a small
/// prime is wrong, beside the bound that it prints.
std::vector<Row> bound_rows();
/// Each spec's best beside its cheapest form's best by equal trials, in turns.
std::vector<Row> speed_rows();
/// Searches of networks' operators with `--algebra auto` beside those without, by equal trials.
std::vector<Row> network_rows();

inline constexpr int kBoundSeed = 1;
inline constexpr int kRightChecks = 10'000;
inline constexpr int kSpeedTrials = 64;
inline constexpr int kSpeedSeed = 1;
inline constexpr int kNetworkSeeds = 5;

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_ALGEBRA_GROUPS_H_
