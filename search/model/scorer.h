// CandidateModel: what a learned model thinks of the candidates of one task.
#ifndef PRUNERC_SEARCH_MODEL_SCORER_H_
#define PRUNERC_SEARCH_MODEL_SCORER_H_

#include "costmodel/cost_model.h"
#include "ir/support/parallel.h"
#include "search/model/online.h"
#include "search/space/candidate.h"
#include "search/space/space.h"
#include "search/space/task.h"

#include <memory>
#include <span>
#include <vector>

namespace prunerc::search {

/// Deterministic in the order of the calls.
class CandidateModel {
 public:
  virtual ~CandidateModel() = default;
  /// What was measured; 0: it did not run.
  virtual void add(const Candidate& candidate, double median_ns) = 0;
  /// Learns, if there is enough that is new.
  virtual void learn(uint64_t seed) = 0;
  /// Whether scores mean anything yet.
  virtual bool is_trained() const = 0;
  /// How many measurements of this task the model is worth before it has seen one.
  virtual double head_start() const { return 0; }
  /// Whether scores and add read the candidates' programs, or their decisions alone.
  virtual bool needs_programs() const { return true; }
  /// By candidate, higher is faster; comparable among these only.
  virtual std::vector<double> scores(std::span<const Candidate> candidates) const = 0;
};

/// Over a CostModel that learns from programs, trained from scratch whenever its data has grown by
/// a twentieth; null for one that does not learn. `task` and `model` outlive it.
std::unique_ptr<CandidateModel> make_program_model(const Task& task,
                                                   const costmodel::CostModel& model);

/// Over a network, which all tasks of a call share: each adds its measurements and learns from
/// everybody's. `number` tells the task apart. All else outlives it.
std::unique_ptr<CandidateModel> make_network_model(const Task& task, const SearchSpace& space,
                                                   std::shared_ptr<OnlineModel> shared,
                                                   int32_t number, ThreadPool& threads);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_SCORER_H_
