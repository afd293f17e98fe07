#include "search/draft/verifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace prunerc::search {
namespace {

/// Measurements with which model and corrected analyzer count alike.
constexpr double kEven = 96;

/// 1 for the best, 0 for the worst: scales of different models do not matter.
std::vector<double> ranks(const std::vector<double>& scores) {
  std::vector<std::size_t> order(scores.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
  std::vector<double> out(scores.size());
  const double most = std::max<double>(1, static_cast<double>(scores.size()) - 1);
  for (std::size_t i = 0; i < order.size(); ++i) out[order[i]] = static_cast<double>(i) / most;
  return out;
}

}  // namespace

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
  const double weight = n / (n + kEven);
  const std::vector<double> model_ranks = ranks(by_model);
  const std::vector<double> analyzer_ranks = ranks(by_analyzer);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].score = weight * model_ranks[i] + (1 - weight) * analyzer_ranks[i];
  }
}

}  // namespace prunerc::search
