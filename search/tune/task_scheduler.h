// Which of several tasks gets the next batch of trials: the one where the weighted sum of best
// times is expected to fall most.
#ifndef PRUNERC_SEARCH_TUNE_TASK_SCHEDULER_H_
#define PRUNERC_SEARCH_TUNE_TASK_SCHEDULER_H_

#include "search/space/task.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace prunerc::search {

/// What is known of one task when a choice is made.
struct TaskProgress {
  /// What had been found when so much was answered.
  struct Point {
    double effort = 0;
    double best_ns = 0;  // 0: nothing ran
  };
  bool is_open = true;  // wants more trials
  double weight = 1;    // its times in the sum
  double flops = 0;     // of one run
  int rounds = 0;       // batches handed out, those in flight included
  /// Trials handed out. Units: full batches, as batches differ in size.
  double effort = 0;
  std::vector<Point> history;  // after each answered batch
  std::string group;           // tasks of one group are expected to reach similar FLOP/s
};

struct SchedulerOptions {
  double alpha = 0.2;  // share of what was gained lately, against what may be gained
  double beta = 2;     // a task is expected to come this near to its group's best FLOP/s
  double window = 3;   // full batches that "lately" means
};

/// Open tasks without a round come first, in order; then the steepest descent of the sum, the first
/// of equals. A task whose first batch is still out promises nothing yet. -1 if no task is open.
int choose_task(std::span<const TaskProgress> tasks, const SchedulerOptions& options = {});

/// Expected change of the task's part of the sum by one more full batch; at most 0. Units: ns.
double expected_change(std::span<const TaskProgress> tasks, int task,
                       const SchedulerOptions& options = {});

/// Tasks whose programs differ in sizes alone, and whose numbers of operations are within a factor
/// of about 1.6.
std::string similarity_group(const Task& task);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_TASK_SCHEDULER_H_
