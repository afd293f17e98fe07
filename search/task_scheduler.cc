#include "search/task_scheduler.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>

namespace prunerc::search {
namespace {

/// A task of which nothing ran is tried so often before others are preferred.
constexpr int kMaxBarrenRounds = 3;
/// A slow task stays in its group for so many rounds more than the others had.
constexpr int kPatience = 5;
constexpr double kGoldenRatio = 1.618;

double best_of(const TaskProgress& task) { return task.history.empty() ? 0 : task.history.back(); }

double speed_of(const TaskProgress& task) {
  const double best = best_of(task);
  return best > 0 ? task.flops / best : 0;
}

// The best FLOP/ns that others of the group show is possible; 0 if the task is alone.
double speed_of_group(std::span<const TaskProgress> tasks, int task,
                      const SchedulerOptions& options) {
  const TaskProgress& own = tasks[static_cast<std::size_t>(task)];
  double fastest = 0;
  int most_rounds = 0;
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (static_cast<int>(i) == task || own.group.empty() || tasks[i].group != own.group) continue;
    fastest = std::max(fastest, speed_of(tasks[i]));
    most_rounds = std::max(most_rounds, tasks[i].rounds);
  }
  // What stays slow after that much effort is not of their kind.
  const bool stays_slow = speed_of(own) < fastest / options.beta;
  if (stays_slow && own.rounds > kPatience + most_rounds) return 0;
  return fastest > 0 ? std::max(fastest, speed_of(own)) : 0;
}

}  // namespace

double expected_change(std::span<const TaskProgress> tasks, int task,
                       const SchedulerOptions& options) {
  const TaskProgress& own = tasks[static_cast<std::size_t>(task)];
  const double best = best_of(own);
  if (best <= 0) {
    return own.rounds < kMaxBarrenRounds ? -std::numeric_limits<double>::infinity() : 0;
  }
  const auto window = static_cast<std::size_t>(options.window);
  double backward = 0;
  if (own.history.size() > window) {
    const double before = own.history[own.history.size() - 1 - window];
    if (before > 0) backward = (best - before) / static_cast<double>(window);
  }
  double next = best - best / std::max(1, own.rounds);
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
