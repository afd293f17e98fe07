#include "search/model/tree_scorer.h"

#include "costmodel/feature/statement.h"

#include <utility>

namespace prunerc::search {
namespace {

/// Features that are remembered of one task, beyond those of measured candidates: some hundred
/// kilobytes a thousand.
constexpr std::size_t kMaxRemembered = 30'000;

}  // namespace

TreeScorer::Features TreeScorer::features_of(const Candidate& candidate) const {
  const auto known = known_.find(candidate.fingerprint);
  if (known != known_.end()) return known->second;
  return std::make_shared<const costmodel::ProgramFeatures>(
      costmodel::statement_features(candidate.program, task_.target));
}

void TreeScorer::add(const Candidate& candidate, double median_ns) {
  measured_.push_back(features_of(candidate));
  median_ns_.push_back(median_ns);
}

void TreeScorer::learn(uint64_t seed) {
  if (measured_.size() < options_.first_training) return;
  const auto due = static_cast<double>(num_due_), now = static_cast<double>(measured_.size());
  const bool grew = options_.beyond_growth ? now > due * (1 + options_.growth)
                                           : now - due >= options_.growth * due;
  if (now <= due || !grew) return;
  num_due_ = measured_.size();
  seed_ = seed;
}

void TreeScorer::prepare() {
  if (num_trained_ < num_due_) train();
}

void TreeScorer::train() {
  num_trained_ = num_due_;
  double best = 0;
  for (std::size_t i = 0; i < num_due_; ++i) {
    if (median_ns_[i] > 0 && (best == 0 || median_ns_[i] < best)) best = median_ns_[i];
  }
  std::vector<const costmodel::ProgramFeatures*> programs;
  std::vector<float> labels;
  for (std::size_t i = 0; i < num_due_; ++i) {
    programs.push_back(measured_[i].get());
    labels.push_back(median_ns_[i] > 0 ? static_cast<float>(best / median_ns_[i]) : 0.0F);
  }
  costmodel::TreeOptions trees = options_.trees;
  trees.seed = seed_;
  Result<costmodel::TreeEnsemble> fitted = costmodel::TreeEnsemble::fit(programs, labels, trees);
  // Data without a statement teaches nothing; the search goes on without trees.
  if (fitted) trees_ = std::make_unique<costmodel::TreeEnsemble>(std::move(fitted).value());
}

std::vector<double> TreeScorer::scores(std::span<const Candidate> candidates) {
  if (known_.size() > kMaxRemembered) known_.clear();
  // A generation holds many copies of one program.
  std::map<Fingerprint, const Candidate*> unseen;
  for (const Candidate& c : candidates) {
    if (!known_.contains(c.fingerprint)) unseen.emplace(c.fingerprint, &c);
  }
  std::vector<const Candidate*> missing;
  for (const auto& [program, candidate] : unseen) missing.push_back(candidate);
  const std::vector<Features> made =
      pool_.map<Features>(missing.size(), [&](std::size_t i) { return features_of(*missing[i]); });
  for (std::size_t i = 0; i < made.size(); ++i) known_[missing[i]->fingerprint] = made[i];
  std::vector<const costmodel::ProgramFeatures*> programs;
  for (const Candidate& c : candidates) programs.push_back(known_.at(c.fingerprint).get());
  std::vector<double> out(candidates.size());
  trees_->predict(programs, out);
  return out;
}

}  // namespace prunerc::search
