// Compares instances of parametric sketches with replays of their traces.
#ifndef PRUNERC_TESTS_SEARCH_PARAMETRIC_CHECK_H_
#define PRUNERC_TESTS_SEARCH_PARAMETRIC_CHECK_H_

#include "search/space/task.h"

namespace prunerc::testing {

struct InstanceCount {
  int sketches = 0;
  int parametric = 0;
  int replayed_only = 0;  ///< not counted as sketches: chains (search/DESIGN.md, D63)
  int refused_by_replay = 0;
  int equal = 0;
  int differs = 0;
  double parametrize_ms =
      0;  // all of them together; on a shared machine, ratios alone say something
  double instantiate_ms = 0;
  double replay_ms = 0;
};

/// Every sketch of the task with the heuristic and `num_cases` - 1 random decisions: an instance is
/// structurally equal to the normal form of the replay, if that is legal. Shows the first programs
/// that differ, and sketches that have no parameters.
void compare_instances(const search::Task& task, int num_cases, InstanceCount* count);
void print_count(const char* what, const InstanceCount& count);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SEARCH_PARAMETRIC_CHECK_H_
