// TimeBudget: how much of a call's time is left, and what its steps take.
#ifndef PRUNERC_SEARCH_TUNE_TIME_BUDGET_H_
#define PRUNERC_SEARCH_TUNE_TIME_BUDGET_H_

#include "search/space/task.h"

#include <functional>
#include <limits>
#include <utility>

namespace prunerc::search {

/// Expected seconds of a step that is taken again and again: a slow one raises it at once, faster
/// ones lower it by halves.
class StepCost {
 public:
  explicit StepCost(double guess_s = 0) : expected_s_(guess_s) {}
  void add(double seconds);
  double seconds() const { return expected_s_; }
  bool is_guess() const { return is_guess_; }

 private:
  double expected_s_;
  bool is_guess_ = true;
};

/// Before one was seen: what comparing one candidate with the unscheduled program takes. Units: s.
double guess_verify_s(const Task& task);

/// The deadline of a call.
class TimeBudget {
 public:
  /// `elapsed` gives the seconds of the call so far; no limit if `limit_s` is 0.
  TimeBudget(double limit_s, std::function<double()> elapsed)
      : limit_s_(limit_s), elapsed_(std::move(elapsed)) {}

  bool is_limited() const { return limit_s_ > 0; }
  double limit_s() const { return limit_s_; }
  double elapsed_s() const { return elapsed_(); }
  /// Negative past the deadline, infinite without one.
  double left_s() const {
    return is_limited() ? limit_s_ - elapsed_() : std::numeric_limits<double>::infinity();
  }

 private:
  double limit_s_;
  std::function<double()> elapsed_;
};

/// What a search that goes on keeps back for a step at its end: what that is expected to take, but
/// for a mere guess no more than a share of the limit. Units: s.
double held_back_s(const TimeBudget& budget, const StepCost& cost);

/// What a call sets aside for one operator's end: comparing its winner, and as much of the finals
/// as their share of the limit allows. Units: s.
struct EndCost {
  double verify_s = 0;
  double finals_s = 0;
  double sum_s() const { return verify_s + finals_s; }
};

/// `turn_s`: one turn of all finalists; `num_tasks` share what finals may take of the limit.
EndCost end_cost(const TimeBudget& budget, double verify_s, double turn_s, std::size_t num_tasks);

/// Finalists that `left_s` seconds are enough for, at most `wanted`; fewer than two are none.
int affordable_finalists(int wanted, double left_s, double measure_s);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_TIME_BUDGET_H_
