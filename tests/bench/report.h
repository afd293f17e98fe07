// The table and the JSON that the benchmarks of one binary print.
#ifndef PRUNERC_TESTS_BENCH_REPORT_H_
#define PRUNERC_TESTS_BENCH_REPORT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::bench {

struct Row {
  std::string name;
  double value = 0;
  std::string unit;
  std::optional<double> goal;
  std::string note;      // for people
  bool at_most = false;  // the goal is an upper limit: of times and faults
};

/// Rows that are measured together; `--only` names one.
struct Group {
  std::string_view name;
  std::function<std::vector<Row>()> measure;
  std::vector<uint64_t> seeds;  // of everything random in it
  bool on_request = false;      // only where it is named
};

/// Of an even number the mean of the two in the middle; 0 of none.
double median(std::vector<double> values);

/// `count` seeds from `first` on.
std::vector<uint64_t> seeds_from(uint64_t first, int count);

/// Measures the groups (or the one called `only`), prints each row when its group is done, and
/// writes them to `json` unless that is empty, with machine, date, seeds and the commit that
/// `./dev bench` names in PRUNERC_COMMIT ("unknown" without it). Returns the exit status: 2, and
/// nothing is measured or written, if no group is called `only`; 1 if there are no rows, which leaves
/// `json` as it is, if a value is no number, or if `json` cannot be written. A missed goal is no failure.
int report(const std::string& bench, std::span<const Group> groups, std::string_view only,
           const std::string& json);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_REPORT_H_
