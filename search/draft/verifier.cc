#include "search/draft/verifier.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace prunerc::search {
namespace {

/// Measurements with which model and corrected analyzer count alike.
constexpr double kEven = 96;
/// New data, as a part of the old, that make training worth its time.
constexpr double kGrowth = 0.05;

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
  programs_.push_back(candidate.program);
  genomes_.push_back({candidate.sketch, candidate.trace.decisions});
  predicted_ns_.push_back(candidate.predicted_ns);
  median_ns_.push_back(measurement.ok() ? measurement.median_ns : 0);
  add_residual(programs_.size() - 1);
}

void Verifier::add_residual(std::size_t i) {
  if (genomes_[i].sketch < 0) return;
  if (median_ns_[i] > 0) {
    residual_.add(genomes_[i], predicted_ns_[i], median_ns_[i]);
  } else {
    residual_.add_failure(genomes_[i]);
  }
}

void Verifier::predict_again(const std::function<double(const Genome&)>& predict) {
  residual_ = {};
  for (std::size_t i = 0; i < genomes_.size(); ++i) {
    const double ns = genomes_[i].sketch >= 0 ? predict(genomes_[i]) : 0;
    if (ns > 0) predicted_ns_[i] = ns;
    add_residual(i);
  }
}

void Verifier::fit(uint64_t seed) {
  const auto least = static_cast<double>(num_trained_) * (1 + kGrowth);
  if (programs_.empty() || static_cast<double>(programs_.size()) <= least) return;
  std::vector<costmodel::Sample> samples;
  for (std::size_t i = 0; i < programs_.size(); ++i) {
    samples.push_back({{&programs_[i], &task_.target}, 0, median_ns_[i]});
  }
  Result<std::unique_ptr<costmodel::CostModel>> made = model_.updated(samples, {seed});
  if (made.ok() && *made != nullptr) learned_ = std::move(made).value();
  num_trained_ = programs_.size();
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
  if (learned_ == nullptr) {
    for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].score = by_analyzer[i];
    return;
  }
  std::vector<costmodel::ModelInput> inputs;
  for (const Candidate& c : candidates) inputs.push_back({&c.program, &task_.target});
  std::vector<costmodel::Score> scores(candidates.size());
  learned_->predict(inputs, scores);
  if (!blend_) {
    for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].score = scores[i].mean;
    return;
  }
  std::vector<double> by_model;
  for (const costmodel::Score& s : scores) by_model.push_back(s.mean);
  const auto n = static_cast<double>(num_measured());
  const double weight = n / (n + kEven);
  const std::vector<double> model_ranks = ranks(by_model);
  const std::vector<double> analyzer_ranks = ranks(by_analyzer);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    candidates[i].score = weight * model_ranks[i] + (1 - weight) * analyzer_ranks[i];
  }
}

}  // namespace prunerc::search
