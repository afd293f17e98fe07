#include "search/tune/time_budget.h"

#include "search/tune/finals.h"

#include <algorithm>
#include <cmath>

namespace prunerc::search {
namespace {

/// Of a limit, at most, for the finals of all operators: what they win over the best time of the
/// search is a few per cent.
constexpr double kFinalsShare = 0.25;
/// Of a limit, at most, for what a guess says: with the finals' share at least half of it is left
/// for the search.
constexpr double kGuessShare = 0.25;

/// Rates of a program as it was written, and of filling and comparing tensors, on a slow machine.
constexpr double kReferenceFlops = 4e9;
constexpr double kReferenceBytes = 1e8;
constexpr double kMostReferenceFlops = 2e10;
constexpr double kLeastVerifyS = 0.3;

}  // namespace

void StepCost::add(double seconds) {
  const bool rises = is_guess_ || seconds > expected_s_;
  expected_s_ = rises ? seconds : (expected_s_ + seconds) / 2;
  is_guess_ = false;
}

double guess_verify_s(const Task& task) {
  return kLeastVerifyS + std::min(task.flops, kMostReferenceFlops) / kReferenceFlops +
         task.bytes / kReferenceBytes;
}

double held_back_s(const TimeBudget& budget, const StepCost& cost) {
  if (!budget.is_limited() || !cost.is_guess()) return cost.seconds();
  return std::min(cost.seconds(), kGuessShare * budget.limit_s());
}

EndCost end_cost(const TimeBudget& budget, double verify_s, double turn_s, std::size_t num_tasks) {
  EndCost cost;
  cost.verify_s = verify_s;
  const double share =
      kFinalsShare * budget.limit_s() / static_cast<double>(std::max<std::size_t>(1, num_tasks));
  cost.finals_s = std::min(static_cast<double>(kFinalTurns) * turn_s, share);
  return cost;
}

int affordable_finalists(int wanted, double left_s, double measure_s) {
  const double each_s = static_cast<double>(kFinalTurns) * measure_s;
  const double most = each_s > 0 ? std::floor(std::max(0.0, left_s) / each_s) : wanted;
  const int num = static_cast<int>(std::min<double>(wanted, most));
  return num < 2 ? 0 : num;
}

}  // namespace prunerc::search
