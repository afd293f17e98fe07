// What a database and the analyzer know of the tuning of operators: the facts behind `prunerc report`.
#ifndef PRUNERC_TOOLS_DRIVER_REPORT_REPORT_H_
#define PRUNERC_TOOLS_DRIVER_REPORT_REPORT_H_

#include "ir/support/result.h"
#include "search/record/database.h"
#include "search/space/task.h"
#include "tools/driver/limits.h"
#include "tools/driver/prunerc.h"
#include "tools/driver/report/hot_loop.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc {

/// One stored measurement.
struct ReportTrial {
  int64_t record_id = 0;
  /// Spent by then on building, measuring and verifying this operator's candidates, added up.
  double seconds = 0;
  MeasureStatus status = MeasureStatus::kRejected;
  double median_ns = 0;     ///< 0 unless ok
  double predicted_ns = 0;  ///< by this build's analyzer; 0: it gives no program of the record
  std::size_t sketch = 0;   ///< index into OperatorReport::sketches
  bool verified = false;
  bool repeated = false;  ///< a later record times the same candidate, and counts instead of it
  bool imported = false;  ///< its time is a claim of another machine
};

/// A cause of failures, and how many trials name it.
struct ReportMessage {
  std::string text;
  int64_t count = 0;
};

struct ReportFailures {
  MeasureStatus status = MeasureStatus::kRejected;
  int64_t count = 0;
  std::vector<ReportMessage> messages;  ///< the most frequent first, few of them
};

/// The analyzer's estimate of one nest.
struct ReportNest {
  std::string name;
  double total_ns = 0;
  std::vector<std::pair<std::string, double>> parts_ns;  ///< those above 0
};

/// A text and the part of it that is shown.
struct ReportText {
  std::vector<std::string> lines;
  int64_t first = 0;      ///< line of the whole that lines[0] is
  int64_t num_lines = 0;  ///< of the whole
};

/// A schedule: what the analyzer makes of its time, and its texts.
struct ReportSchedule {
  double predicted_ns = 0;
  double launch_ns = 0;
  std::vector<ReportNest> nests;
  ReportText trace, program, code;
  std::string code_kind;  ///< "assembly", "CUDA"; empty: `note` says why there is no code
  HotLoop loop;           ///< of assembly; lines of the whole
  std::string note;
};

/// The time of the schedule that nothing was measured for.
struct ReportHeuristic {
  double ns = 0;
  bool measured = false;  ///< else predicted
};

/// An operator on one target.
struct OperatorReport {
  search::Task task;  ///< names as in its text if that was given, weight as in its net
  int64_t num_records = 0;
  std::vector<std::string> sketches;
  std::vector<ReportTrial> trials;  ///< in the order they were stored
  std::vector<ReportFailures> failures;
  double rank_correlation = 0;  ///< Spearman's, of predicted and measured times
  int64_t num_ranked = 0;       ///< trials that it is of
  std::vector<Roof> roofs;
  LimitShare share;                    ///< of the chosen record
  std::optional<search::Record> best;  ///< the record that was asked for, else the fastest verified
  bool is_asked_for = false;
  std::optional<ReportSchedule> schedule;  ///< of `best`, if this build gives its program
  std::optional<ReportHeuristic> heuristic;
  std::string note;  ///< why something above is missing
};

/// Which operators. None and no records: all of the database.
struct ReportRequest {
  std::vector<Operator> ops;     ///< on every target that has records of them
  std::vector<int64_t> records;  ///< the operator of each, and that record as its schedule
  int threads = 0;               ///< only records of kernels with so many; 0: any
};

struct TuningReport {
  std::vector<OperatorReport> operators;
  std::vector<std::string> missing;  ///< operators without a record; "record 17"
};

/// Reads; measures nothing. Errors: those of the database. Cost: some ms for each record.
Result<TuningReport> report_of(search::Database& database, const ReportRequest& request);

/// Spearman's rank correlation of pairs, ties at their mean rank; 0 of fewer than two, or where one
/// side is constant.
double rank_correlation(const std::vector<std::pair<double, double>>& pairs);

/// The text with each absolute path cut to its last component.
std::string without_folders(std::string_view text);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_REPORT_REPORT_H_
