// Losses over lists of candidates: LambdaRank as published, our own form of it, and the error of
// log-latencies.
#ifndef PRUNERC_COSTMODEL_NN_RANK_LOSS_H_
#define PRUNERC_COSTMODEL_NN_RANK_LOSS_H_

#include <span>

namespace prunerc::costmodel::nn {

/// Labels are in [0, 1], higher is faster. Every function returns the loss and writes its gradients
/// to `d`; ranks, gains and the weights of pairs count as constant in them.

/// As the release computes it: one list, the sum over pairs of unequal labels of
/// -log2(max(max(sigmoid(s_i - s_j), 1e-10) ^ w_ij, 1e-10)) with
/// w_ij = |1 / log2(1 + i) - 1 / log2(1 + j)| |g_i - g_j| by places in the order of the scores and
/// gains g = (2^y - 1) / their best discounted sum.
template <typename T>
double lambda_rank_published(std::span<const T> scores, std::span<const T> labels, std::span<T> d);

struct RankLossOptions {
  /// Part of a list's loss that is spread evenly over its pairs: without it, pairs of slow
  /// candidates weigh next to nothing and are left in any order.
  double even_share = 0.25;
  bool operator==(const RankLossOptions&) const = default;
};

/// Ours, of one list of one task: the mean of log2(1 + exp(s_j - s_i)) over pairs with y_i > y_j,
/// weighted by w_ij as above and by `even_share`; 0 for a list without such pairs. Neither the
/// length of a list nor the number of lists changes its scale.
template <typename T>
double lambda_rank(std::span<const T> scores, std::span<const T> labels,
                   const RankLossOptions& options, std::span<T> d);

/// Huber loss of `predicted` against `target`, mean over those whose target is finite. Beyond
/// `knee` errors count linearly.
template <typename T>
double huber(std::span<const T> predicted, std::span<const T> target, double knee, std::span<T> d);

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_RANK_LOSS_H_
