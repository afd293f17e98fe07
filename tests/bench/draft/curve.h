// How a search went: a falling curve, and where it was as good as another one.
#ifndef PRUNERC_TESTS_BENCH_DRAFT_CURVE_H_
#define PRUNERC_TESTS_BENCH_DRAFT_CURVE_H_

#include "search/tune/tuner.h"

#include <span>
#include <string>
#include <vector>

namespace prunerc::bench {

/// One number over the time and the trials of a search: the task's latency, or the weighted sum of
/// all tasks', from when each has one.
struct Curve {
  std::vector<search::CurvePoint> points;
  double final_ns = 0;
  int64_t trials = 0;
  search::PhaseSeconds seconds;
};
Curve curve_of(const search::TuneReport& report);

/// Where a curve first was at most this high; its whole budget if it never was.
struct Reached {
  double trials = 0, seconds = 0;
  bool ever = false;
};
Reached reach(const Curve& curve, double ns);

/// How many times fewer trials and seconds ours needs to be as fast as the baseline is at its end:
/// of the baseline's whole budget, as in the paper (Pruner, ASPLOS'25, arXiv 2402.02361), and of what the
/// baseline itself had spent when it first was that fast. `near_*`: the latter for both to come
/// within kNearEnd of that end, since times differ by more from one recording to the next.
struct Gain {
  double trials = 0, seconds = 0;
  double own_trials = 0, own_seconds = 0;
  double near_trials = 0, near_seconds = 0;
  double final = 0;  // the baseline's latency at its end over ours
  bool ever = false;
};
inline constexpr double kNearEnd = 0.01;
Gain gain_over(const Curve& baseline, const Curve& ours);
/// One field of each.
std::vector<double> values_of(std::span<const Gain> gains, double Gain::*field);
/// Field by field; `ever` if all of them are.
Gain median_of(std::span<const Gain> gains);

/// Share of the wall time in which nothing was being built or measured.
double unhidden_of(const search::PhaseSeconds& seconds);
/// Share of searching and learning, also while something is built or measured meanwhile.
double overhead_of(const search::PhaseSeconds& seconds);
/// For notes: seconds of each phase.
std::string to_text(const search::PhaseSeconds& seconds);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_DRAFT_CURVE_H_
