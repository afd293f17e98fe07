#include "search/model/quality.h"

#include <algorithm>
#include <cmath>

namespace prunerc::search {

using costmodel::model::Dataset;

std::vector<TaskQuality> quality_of(const Dataset& data, std::span<const float> scores) {
  std::vector<TaskQuality> out;
  for (const std::vector<int>& group : costmodel::model::groups_of(data)) {
    std::vector<int> order;
    for (const int i : group) {
      if (data.outcomes[static_cast<std::size_t>(i)].ns > 0) order.push_back(i);
    }
    if (order.size() < 2) continue;
    const auto ns = [&](int i) { return data.outcomes[static_cast<std::size_t>(i)].ns; };
    const auto faster = [&](int a, int b) { return ns(a) < ns(b); };
    const double best = ns(*std::min_element(order.begin(), order.end(), faster));
    std::vector<float> own;
    for (const int i : order) own.push_back(scores[static_cast<std::size_t>(i)]);
    TaskQuality task;
    const costmodel::model::Outcome& first = data.outcomes[static_cast<std::size_t>(order[0])];
    task.task = first.task;
    task.platform = first.platform;
    task.programs = static_cast<int>(order.size());
    task.pairwise = costmodel::model::pairwise_accuracy(data, order, own);
    if (std::isnan(task.pairwise)) continue;  // all equal: there is no order
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    const auto five =
        order.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(5, order.size()));
    task.best_ns = best;
    task.top1 = best / ns(order[0]);
    task.top5 = best / ns(*std::min_element(order.begin(), five, faster));
    out.push_back(task);
  }
  return out;
}

TaskQuality mean_quality(std::span<const TaskQuality> tasks) {
  TaskQuality mean;
  const auto n = static_cast<double>(std::max<std::size_t>(1, tasks.size()));
  for (const TaskQuality& t : tasks) {
    mean.programs += t.programs;
    mean.top1 += t.top1 / n;
    mean.top5 += t.top5 / n;
    mean.pairwise += t.pairwise / n;
  }
  return mean;
}

}  // namespace prunerc::search
