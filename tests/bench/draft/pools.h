// The pools that the benchmarks of the draft read, and how they sum up.
#ifndef PRUNERC_TESTS_BENCH_DRAFT_POOLS_H_
#define PRUNERC_TESTS_BENCH_DRAFT_POOLS_H_

#include "search/record/pool.h"

#include <string>
#include <vector>

namespace prunerc::bench {

struct NamedPool {
  std::string name;
  std::string op_class;  // what stands before the first "_" of the name
  search::Pool pool;
};

/// All of a folder, by name.
std::vector<NamedPool> read_pools(const std::string& folder);

/// ns of the fastest row.
double best_of(const search::Pool& pool);

double mean(const std::vector<double>& values);
/// 0 of none.
double geometric_mean(const std::vector<double>& values);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_DRAFT_POOLS_H_
