// The progress of tuning on stderr: a table that redraws itself on a terminal, else a line every
// ten seconds.
#ifndef PRUNERC_TOOLS_PRUNERC_DISPLAY_H_
#define PRUNERC_TOOLS_PRUNERC_DISPLAY_H_

#include "runtime/device.h"
#include "search/record/pool.h"
#include "search/tune/tuner.h"
#include "tools/driver/limits.h"
#include "tools/prunerc/heartbeat.h"

#include <chrono>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::cli {

/// "12.3 us", "4.56 ms".
std::string time_text(double ns);
/// "279.40 GFLOP/s", or "48.10 GOP/s" of what computes mostly with integers; "-" of what does not.
std::string rate_text(const search::Work& work, double ns);
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

/// Shows TuneProgress; redraws only on a terminal. Elsewhere a line now and then, also when no
/// progress comes. Threads: belongs to one, beside its own.
class Display {
 public:
  /// `tasks` as in the progress to come; `time_s`: when the search ends, 0 if no time limits it.
  Display(std::string target, std::vector<search::Task> tasks, double time_s = 0);
  void show(const search::TuneProgress& progress);
  /// What is being done now, where that gives no progress for a while.
  void begin(std::string_view phase);
  /// The last state, once more, in full. `shares`: one of each task.
  void finish(const search::TuneReport& report, std::span<const LimitShare> shares);

 private:
  // The heaviest `most` tasks in their order.
  static std::string table(std::span<const search::TaskReport> tasks,
                           std::span<const LimitShare> shares, std::size_t most);
  void beat();
  void print_line();
  void redraw();

  std::string target_;
  std::vector<search::Task> tasks_;
  double time_s_;
  bool is_terminal_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::mutex mutex_;  // of what follows
  std::string text_;  // of the latest progress
  std::string phase_;
  int lines_drawn_ = 0;
  bool is_finished_ = false;
  std::chrono::steady_clock::time_point last_{};
  Heartbeat heartbeat_;  // last: it sees the others
};

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_DISPLAY_H_
