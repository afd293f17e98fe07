#include "search/model/joined_scorer.h"

#include "search/model/join.h"

namespace prunerc::search {

void JoinedScorer::add(const Candidate& candidate, double median_ns) {
  analyzer_.add(candidate, median_ns);
  if (learned_ != nullptr) learned_->add(candidate, median_ns);
}

void JoinedScorer::learn(uint64_t seed) {
  if (learned_ != nullptr) learned_->learn(seed);
}

void JoinedScorer::prepare() {
  if (learned_ != nullptr) learned_->prepare();
}

bool JoinedScorer::needs_programs() const {
  return learned_ != nullptr && learned_->needs_programs();
}

std::vector<double> JoinedScorer::scores(std::span<const Candidate> candidates) {
  if (learned_ == nullptr || !learned_->is_trained()) return analyzer_.scores(candidates);
  if (join_ == Join::kLearnedAlone) return learned_->scores(candidates);
  const std::vector<double> by_analyzer = analyzer_.scores(candidates);
  const double n = static_cast<double>(analyzer_.num_measured()) + learned_->head_start();
  return join_ranks(learned_->scores(candidates), by_analyzer, model_weight(n));
}

}  // namespace prunerc::search
