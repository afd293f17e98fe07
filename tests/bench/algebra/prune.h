// The filter of the bank in numbers.
#ifndef PRUNERC_TESTS_BENCH_ALGEBRA_PRUNE_H_
#define PRUNERC_TESTS_BENCH_ALGEBRA_PRUNE_H_

#include "tests/bench/report.h"

#include <vector>

namespace prunerc::bench {

struct PruneOptions {
  double seconds = 30;  // at which a search without the filter ends
  int max_ops = 11;     // larger ones are left out
};

/// RMSNorm+Linear searched up to 5, 6, 7, 9 and 11 operations: `prune/OPS/WHAT[/unfiltered]`, where
/// WHAT is tried, filtered, evaluated, kept, forms or seconds, and `prune/OPS/fewer`, how many times
/// more terms are evaluated without the filter, at least. A search that time or memory ended is said
/// to be censored. `prune/filter_ns`: of one call.
std::vector<Row> prune_rows(const PruneOptions& options);

inline constexpr int kPruneSeed = 1;

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_ALGEBRA_PRUNE_H_
