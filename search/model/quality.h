// How good an order is: top-k and pairwise accuracy, task by task.
#ifndef PRUNERC_SEARCH_MODEL_QUALITY_H_
#define PRUNERC_SEARCH_MODEL_QUALITY_H_

#include "costmodel/model/dataset.h"

#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::search {

/// Of one task on one platform.
struct TaskQuality {
  int32_t task = 0, platform = 0;
  int programs = 0;
  double best_ns = 0;
  double top1 = 0;      // best time / time of the one with the highest score
  double top5 = 0;      // best time / best time among the five highest
  double pairwise = 0;  // pairs in the right order
};

/// By task, those with at least two different times. scores[i] is of program i.
std::vector<TaskQuality> quality_of(const costmodel::model::Dataset& data,
                                    std::span<const float> scores);
/// Means over tasks; the sum of their programs.
TaskQuality mean_quality(std::span<const TaskQuality> tasks);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_QUALITY_H_
