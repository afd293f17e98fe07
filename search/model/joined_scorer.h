// A learned scorer and the analyzer corrected by neighbours, joined by ranks.
#ifndef PRUNERC_SEARCH_MODEL_JOINED_SCORER_H_
#define PRUNERC_SEARCH_MODEL_JOINED_SCORER_H_

#include "search/model/analyzer_scorer.h"
#include "search/model/scorer.h"

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace prunerc::search {

/// Who has a say once the learned scorer is trained.
enum class Join : uint8_t {
  kRanks,  // both: the analyzer while there are few measurements, then more and more what was
           // learned (model_weight in join.h)
  kLearnedAlone,  // as published
};

class JoinedScorer final : public Scorer {
 public:
  /// Without a learned scorer, and until it is trained, the analyzer decides alone.
  JoinedScorer(std::unique_ptr<Scorer> learned, Join join)
      : learned_(std::move(learned)), join_(join) {}

  void add(const Candidate& candidate, double median_ns) override;
  void learn(uint64_t seed) override;
  void prepare() override;
  bool needs_programs() const override;
  bool needs_predictions() const override { return true; }
  std::vector<double> scores(std::span<const Candidate> candidates) override;
  void predict_again(const Predict& predict) override { analyzer_.predict_again(predict); }

 private:
  std::unique_ptr<Scorer> learned_;
  Join join_;
  AnalyzerScorer analyzer_;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_JOINED_SCORER_H_
