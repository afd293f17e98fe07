// Joining the orders of a learned model and of the latency analyzer.
#ifndef PRUNERC_SEARCH_MODEL_JOIN_H_
#define PRUNERC_SEARCH_MODEL_JOIN_H_

#include <span>
#include <vector>

namespace prunerc::search {

/// Measurements of a task that a network from a checkpoint makes up for, about: what the replayed
/// searches like best.
inline constexpr double kHeadStart = 64;

/// Weight of a learned model, the analyzer's being the rest, after so many measurements of the
/// task, head start included: half after 96.
double model_weight(double num_measured);

/// Weighted means of ranks, 1 for the best and 0 for the worst, so that scales do not matter.
/// Higher scores are better, equal ones share their mean rank. Cost: O(n log n).
std::vector<double> join_ranks(std::span<const double> model, std::span<const double> analyzer,
                               double model_weight);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_JOIN_H_
