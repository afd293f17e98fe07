// Scorer: what orders the candidates of one task.
#ifndef PRUNERC_SEARCH_MODEL_SCORER_H_
#define PRUNERC_SEARCH_MODEL_SCORER_H_

#include "search/space/candidate.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace prunerc::search {

/// Deterministic in the order of the calls. Only the order of scores of one call means anything.
class Scorer {
 public:
  virtual ~Scorer() = default;
  /// What was measured. Units: ns; 0: it did not run.
  virtual void add(const Candidate& candidate, double median_ns) = 0;
  /// Takes in what was added, if there is enough of it.
  virtual void learn(uint64_t /*seed*/) {}
  /// Before the questions of a round: may train on what was learned.
  virtual void prepare() {}
  /// Whether scores mean anything yet.
  virtual bool is_trained() const { return true; }
  /// How many measurements of this task the scorer is worth before it has seen one.
  virtual double head_start() const { return 0; }
  /// Whether scores and add read the candidates' programs, or their decisions alone.
  virtual bool needs_programs() const { return true; }
  /// Whether add and scores read predicted_ns.
  virtual bool needs_predictions() const { return false; }
  /// The score of the worst candidate that there can be, from which scores are shares; none: there
  /// is no such score, and the least of the candidates at hand stands for it.
  virtual bool has_zero() const { return false; }
  /// By candidate, higher is faster. Asked of trained scorers only.
  virtual std::vector<double> scores(std::span<const Candidate> candidates) = 0;

  /// An analyzer's latency of each candidate. Units: ns; 0: it says nothing of that one.
  using Predict = std::function<std::vector<double>(std::span<const Genome>)>;
  /// The analyzer has changed: what it says now of what was measured.
  virtual void predict_again(const Predict& /*predict*/) {}
};

/// Sets `score` of each; without effect while the scorer is not trained.
inline void set_scores(Scorer& scorer, std::span<Candidate> candidates) {
  if (candidates.empty() || !scorer.is_trained()) return;
  const std::vector<double> scores = scorer.scores(candidates);
  for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].score = scores[i];
}

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_SCORER_H_
