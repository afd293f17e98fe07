// The order of a network that all tasks of a call share.
#ifndef PRUNERC_SEARCH_MODEL_NETWORK_SCORER_H_
#define PRUNERC_SEARCH_MODEL_NETWORK_SCORER_H_

#include "ir/support/parallel.h"
#include "search/model/inputs.h"
#include "search/model/online.h"
#include "search/model/scorer.h"
#include "search/space/space.h"
#include "search/space/task.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace prunerc::search {

/// Each task adds its measurements and learns from everybody's.
class NetworkScorer final : public Scorer {
 public:
  /// `number` tells the task apart from others of the network. All else outlives the scorer.
  NetworkScorer(const Task& task, const SearchSpace& space, std::shared_ptr<OnlineModel> shared,
                int32_t number, ThreadPool& threads);

  void add(const Candidate& candidate, double median_ns) override;
  void learn(uint64_t seed) override;
  bool is_trained() const override { return shared_->is_trained(); }
  double head_start() const override;
  bool needs_programs() const override { return false; }
  std::vector<double> scores(std::span<const Candidate> candidates) override;

 private:
  InputSource source_;
  std::shared_ptr<OnlineModel> shared_;
  int32_t number_;
  ThreadPool& threads_;
  std::vector<Genome> new_;  // not handed on yet
  std::vector<double> new_ns_;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_NETWORK_SCORER_H_
