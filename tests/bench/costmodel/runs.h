// How the benchmarks of costmodel compare models over splits: means, and paired differences.
#ifndef PRUNERC_TESTS_BENCH_COSTMODEL_RUNS_H_
#define PRUNERC_TESTS_BENCH_COSTMODEL_RUNS_H_

#include "search/model/quality.h"
#include "search/record/corpus.h"
#include "tests/bench/report.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::bench {

/// What one model reached on the held-out tasks of one split.
struct Run {
  int seed = 0;
  std::map<int32_t, search::TaskQuality> tasks;
};

using Field = double search::TaskQuality::*;

double mean_of(const std::map<int32_t, search::TaskQuality>& tasks, Field field);

/// TenSet's top-k: the best times' sum over the chosen ones' sum, so that slow tasks count more.
Row sums_row(const std::string& name, const std::vector<Run>& runs, Field field);
Row mean_row(const std::string& name, const std::vector<Run>& runs, Field field,
             std::optional<double> goal);

/// Mean of a's score less b's over all tasks and seeds. The 95 % interval resamples operators with
/// all their pairs: those of one operator resemble each other, whatever the platform and the seed.
struct Difference {
  double mean = 0, low = 0, high = 0;
  std::size_t pairs = 0, operators = 0;
};
Difference paired(const std::vector<Run>& a, const std::vector<Run>& b, Field field,
                  const std::map<int32_t, std::string>& operators, int resamplings);
Row difference_row(const std::string& name, const Difference& d,
                   std::optional<double> goal = std::nullopt);

/// Operators by task; by "/" and class, "" being all of them.
std::map<std::string, std::map<int32_t, std::string>> operators_by_class(
    const search::Corpus& corpus);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_COSTMODEL_RUNS_H_
