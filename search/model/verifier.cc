#include "search/model/verifier.h"

#include "search/model/join.h"

#include <algorithm>
#include <cmath>

namespace prunerc::search {

void Verifier::add(const Candidate& candidate, const Measurement& measurement) {
  genomes_.push_back(genome_of(candidate));
  predicted_ns_.push_back(candidate.predicted_ns);
  median_ns_.push_back(measurement.ok() ? measurement.median_ns : 0);
  add_residual(genomes_.size() - 1);
  if (model_ != nullptr) model_->add(candidate, median_ns_.back());
}

void Verifier::add_residual(std::size_t i) {
  if (genomes_[i].sketch < 0) return;
  if (median_ns_[i] > 0) {
    residual_.add(genomes_[i], predicted_ns_[i], median_ns_[i]);
  } else {
    residual_.add_failure(genomes_[i]);
  }
}

void Verifier::predict_again(const Predict& predict) {
  residual_ = {};
  const std::vector<double> ns = predict(genomes_);
  for (std::size_t i = 0; i < genomes_.size(); ++i) {
    if (ns[i] > 0) predicted_ns_[i] = ns[i];
    add_residual(i);
  }
}

void Verifier::fit(uint64_t seed) {
  if (model_ != nullptr) model_->learn(seed);
}

std::vector<double> Verifier::analyzer_scores(const std::vector<Candidate>& candidates) const {
  std::vector<double> out;
  for (const Candidate& c : candidates) {
    const double correction = residual_.correction({c.sketch, c.trace.decisions});
    out.push_back(-std::log(std::max(c.predicted_ns, 1e-3)) - correction);
  }
  return out;
}

void Verifier::score(std::vector<Candidate>& candidates) const {
  if (candidates.empty()) return;
  const std::vector<double> by_analyzer = analyzer_scores(candidates);
  if (model_ == nullptr || !model_->is_trained()) {
    for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].score = by_analyzer[i];
    return;
  }
  const std::vector<double> by_model = model_->scores(candidates);
  if (!blend_) {
    for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].score = by_model[i];
    return;
  }
  const double n = static_cast<double>(num_measured()) + model_->head_start();
  const std::vector<double> joined = join_ranks(by_model, by_analyzer, model_weight(n));
  for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].score = joined[i];
}

}  // namespace prunerc::search
