// The analyzer's order, corrected by what was measured nearby.
#ifndef PRUNERC_SEARCH_MODEL_ANALYZER_SCORER_H_
#define PRUNERC_SEARCH_MODEL_ANALYZER_SCORER_H_

#include "search/model/residual.h"
#include "search/model/scorer.h"

#include <cstddef>
#include <span>
#include <vector>

namespace prunerc::search {

/// Minus the logarithm of predicted_ns, less the mean error of measured neighbours (residual.h).
class AnalyzerScorer final : public Scorer {
 public:
  void add(const Candidate& candidate, double median_ns) override;
  bool needs_programs() const override { return false; }
  bool needs_predictions() const override { return true; }
  std::vector<double> scores(std::span<const Candidate> candidates) override;
  void predict_again(const Predict& predict) override;
  std::size_t num_measured() const { return genomes_.size(); }

 private:
  void add_residual(std::size_t i);

  ResidualModel residual_;
  std::vector<Genome> genomes_;  // of what was measured
  std::vector<double> predicted_ns_;
  std::vector<double> median_ns_;  // 0: failed
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_ANALYZER_SCORER_H_
