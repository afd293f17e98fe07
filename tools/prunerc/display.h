// The progress of tuning on stderr: a table that redraws itself on a terminal, else a line every
// ten seconds.
#ifndef PRUNERC_TOOLS_PRUNERC_DISPLAY_H_
#define PRUNERC_TOOLS_PRUNERC_DISPLAY_H_

#include "search/tune/tuner.h"

#include <chrono>
#include <string>

namespace prunerc::cli {

/// "12.3 us", "4.56 ms".
std::string time_text(double ns);
/// "412 ok, 37 timeout, 2 wrong result": statuses that occurred, ok first.
std::string counts_text(const search::StatusCounts& counts);
/// "search 31%, build 44%, measure 19%, verify 6%": shares of their sum.
std::string phases_text(const search::PhaseSeconds& seconds);

/// Shows TuneProgress. Colour and redrawing only on a terminal and unless NO_COLOR is set.
class Display {
 public:
  explicit Display(std::string target);
  void show(const search::TuneProgress& progress);
  /// The last state, once more, in full.
  void finish(const search::TuneReport& report);

 private:
  std::string table(std::span<const search::TaskReport> tasks) const;

  std::string target_;
  bool is_terminal_;
  int lines_drawn_ = 0;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace prunerc::cli

#endif  // PRUNERC_TOOLS_PRUNERC_DISPLAY_H_
