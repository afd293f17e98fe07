// Verifier: orders drafted candidates by what was measured so far.
#ifndef PRUNERC_SEARCH_MODEL_VERIFIER_H_
#define PRUNERC_SEARCH_MODEL_VERIFIER_H_

#include "search/model/residual.h"
#include "search/model/scorer.h"
#include "search/record/measurement.h"
#include "search/space/candidate.h"

#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace prunerc::search {

/// A learned model, and beside it the analyzer corrected by measured neighbours. While there are
/// few measurements the second decides, then more and more the first.
class Verifier {
 public:
  /// Without a model the analyzer decides. `blend` false: the model alone, as published.
  Verifier(std::unique_ptr<CandidateModel> model, bool blend)
      : model_(std::move(model)), blend_(blend) {}

  void add(const Candidate& candidate, const Measurement& measurement);
  /// What an analyzer says of each, in ns; 0: nothing.
  using Predict = std::function<std::vector<double>(std::span<const Genome>)>;
  /// The analyzer has changed: what it says now of what was measured; 0: as before.
  void predict_again(const Predict& predict);
  /// Learns if there is something new. Deterministic in the order of add().
  void fit(uint64_t seed);
  /// Sets `score`, higher is better, comparable among these only.
  void score(std::vector<Candidate>& candidates) const;
  /// Whether score reads programs; else decisions and predicted_ns are enough.
  bool needs_programs() const { return model_ != nullptr && model_->needs_programs(); }
  std::size_t num_measured() const { return genomes_.size(); }

 private:
  void add_residual(std::size_t i);
  std::vector<double> analyzer_scores(const std::vector<Candidate>& candidates) const;

  std::unique_ptr<CandidateModel> model_;
  bool blend_;
  ResidualModel residual_;
  std::vector<Genome> genomes_;  // of what was measured
  std::vector<double> predicted_ns_;
  std::vector<double> median_ns_;  // 0: failed
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_VERIFIER_H_
