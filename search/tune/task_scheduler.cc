#include "search/tune/task_scheduler.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

namespace prunerc::search {
namespace {

/// A task of which nothing ran is tried so often before others are preferred.
constexpr int kMaxRoundsWithoutResult = 3;
/// A slow task stays in its group for so many full batches more than the others had.
constexpr double kPatience = 5;
constexpr double kGoldenRatio = 1.618;

double best_of(const TaskProgress& task) {
  return task.history.empty() ? 0 : task.history.back().best_ns;
}

double speed_of(const TaskProgress& task) {
  const double best = best_of(task);
  return best > 0 ? task.flops / best : 0;
}

// The best FLOP/ns that others of the group show is possible; 0 if the task is alone.
double speed_of_group(std::span<const TaskProgress> tasks, int task,
                      const SchedulerOptions& options) {
  const TaskProgress& own = tasks[static_cast<std::size_t>(task)];
  double fastest = 0;
  double most_effort = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (static_cast<int>(i) == task || own.group.empty() || tasks[i].group != own.group) continue;
    fastest = std::max(fastest, speed_of(tasks[i]));
    most_effort = std::max(most_effort, tasks[i].effort);
  }
  // What stays slow after that much effort is not of their kind.
  const bool stays_slow = speed_of(own) < fastest / options.beta;
  if (stays_slow && own.effort > kPatience + most_effort) return 0;
  return fastest > 0 ? std::max(fastest, speed_of(own)) : 0;
}

// Gain per full batch over the last `window` of them; 0 if there were not so many.
double recent_change(const TaskProgress& task, double window) {
  const TaskProgress::Point& now = task.history.back();
  for (auto then = task.history.rbegin() + 1; then != task.history.rend(); ++then) {
    const double effort = now.effort - then->effort;
    if (effort < window) continue;
    return then->best_ns > 0 ? (now.best_ns - then->best_ns) / effort : 0;
  }
  return 0;
}

}  // namespace

double expected_change(std::span<const TaskProgress> tasks, int task,
                       const SchedulerOptions& options) {
  const TaskProgress& own = tasks[static_cast<std::size_t>(task)];
  if (own.history.empty()) return 0;
  const double best = best_of(own);
  if (best <= 0) {
    return own.rounds < kMaxRoundsWithoutResult ? -std::numeric_limits<double>::infinity() : 0;
  }
  const double backward = recent_change(own, options.window);
  double next = best - best / std::max(1.0, own.effort);
  if (const double speed = speed_of_group(tasks, task, options); speed > 0) {
    next = std::min(next, options.beta * own.flops / speed);
  }
  return own.weight * (options.alpha * backward + (1 - options.alpha) * (next - best));
}

int choose_task(std::span<const TaskProgress> tasks, const SchedulerOptions& options) {
  int chosen = -1;
  double steepest = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!tasks[i].is_open) continue;
    if (tasks[i].rounds == 0) return static_cast<int>(i);
    const double change = expected_change(tasks, static_cast<int>(i), options);
    if (chosen >= 0 && change >= steepest) continue;
    chosen = static_cast<int>(i);
    steepest = change;
  }
  return chosen;
}

std::string similarity_group(const Task& task) {
  std::string group;
  bool in_number = false;
  for (const char c : task.key.program) {
    const bool is_digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!is_digit) group += c;
    if (is_digit && !in_number) group += '#';
    in_number = is_digit;
  }
  const double size = std::log(task.flops + 1) / std::log(kGoldenRatio);
  return group + std::to_string(static_cast<int64_t>(size));
}

}  // namespace prunerc::search
