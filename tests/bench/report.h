// The table and the JSON that the benchmarks of one binary print.
#ifndef PRUNERC_TESTS_BENCH_REPORT_H_
#define PRUNERC_TESTS_BENCH_REPORT_H_

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
  bool on_request = false;  // only where it is named
};

/// Measures the groups (or the one called `only`), prints each row when its group is done, and
/// writes them to `json` unless that is empty. Returns the exit status.
int report(const std::string& bench, std::span<const Group> groups, std::string_view only,
           const std::string& json);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_REPORT_H_
