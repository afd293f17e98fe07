#include "search/model/analyzer_scorer.h"

#include <algorithm>
#include <cmath>

namespace prunerc::search {

void AnalyzerScorer::add(const Candidate& candidate, double median_ns) {
  genomes_.push_back(genome_of(candidate));
  predicted_ns_.push_back(candidate.predicted_ns);
  median_ns_.push_back(median_ns);
  add_residual(genomes_.size() - 1);
}

void AnalyzerScorer::add_residual(std::size_t i) {
  // A stored schedule of no sketch has no neighbours.
  if (genomes_[i].sketch < 0) return;
  if (median_ns_[i] > 0) {
    residual_.add(genomes_[i], predicted_ns_[i], median_ns_[i]);
  } else {
    residual_.add_failure(genomes_[i]);
  }
}

void AnalyzerScorer::predict_again(const Predict& predict) {
  residual_ = {};
  const std::vector<double> ns = predict(genomes_);
  for (std::size_t i = 0; i < genomes_.size(); ++i) {
    if (ns[i] > 0) predicted_ns_[i] = ns[i];
    add_residual(i);
  }
}

std::vector<double> AnalyzerScorer::scores(std::span<const Candidate> candidates) {
  std::vector<double> out;
  for (const Candidate& c : candidates) {
    out.push_back(-std::log(std::max(c.predicted_ns, 1e-3)) - residual_.correction(genome_of(c)));
  }
  return out;
}

}  // namespace prunerc::search
