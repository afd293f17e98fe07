// The progress of tuning on stderr: a table that redraws itself on a terminal, else a line every
// ten seconds.
#ifndef PRUNERC_TOOLS_PRUNERC_DISPLAY_H_
#define PRUNERC_TOOLS_PRUNERC_DISPLAY_H_

#include "runtime/device.h"
#include "search/record/pool.h"
#include "search/tune/tuner.h"
#include "tools/driver/limits.h"

#include <chrono>
#include <span>
#include <string>
#include <vector>

namespace prunerc::cli {

/// "12.3 us", "4.56 ms".
std::string time_text(double ns);
/// "412 ok, 37 timeout, 2 wrong result": statuses that occurred, ok first.
std::string counts_text(const search::StatusCounts& counts);
/// Outcomes of a pool's rows.
search::StatusCounts counts_of(const search::Pool& pool);
/// Of the fastest row; 0 if none ran. Units: ns.
double best_ns(const search::Pool& pool);
/// "znver4/2": name and threads of a target that is kept as text.
std::string target_text(const std::string& target);
/// "search 31%, build 44%, measure 19%, verify 6%": shares of their sum.
std::string phases_text(const search::PhaseSeconds& seconds);

/// Prints that a kernel was not timed, and why; gives the exit code.
int not_timed(const runtime::Measurement& measurement);

/// Of each task, in order; null as `remeasure` where nothing may be measured.
std::vector<LimitShare> shares_of_limits(std::span<const search::Task> tasks,
                                         std::span<const search::TaskReport> reports,
                                         const Remeasure& remeasure);

/// Shows TuneProgress; redraws only on a terminal.
class Display {
 public:
  /// `tasks` as in the progress to come.
  Display(std::string target, std::vector<search::Task> tasks);
  void show(const search::TuneProgress& progress);
  /// The last state, once more, in full. `shares`: one of each task.
  void finish(const search::TuneReport& report, std::span<const LimitShare> shares);

 private:
  std::string table(std::span<const search::TaskReport> tasks,
                    std::span<const LimitShare> shares) const;

  std::string target_;
  std::vector<search::Task> tasks_;
  bool is_terminal_;
  int lines_drawn_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_DISPLAY_H_
