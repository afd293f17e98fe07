// The order of boosted trees over the statements of programs, trained anew on what a task measured.
#ifndef PRUNERC_SEARCH_MODEL_TREE_SCORER_H_
#define PRUNERC_SEARCH_MODEL_TREE_SCORER_H_

#include "costmodel/xgb.h"
#include "ir/support/hash.h"
#include "ir/support/parallel.h"
#include "search/model/scorer.h"
#include "search/space/task.h"

#include <cstddef>
#include <map>
#include <memory>
#include <span>
#include <vector>

namespace prunerc::search {

struct TreeScorerOptions {
  std::size_t first_training = 1;  // measurements before the trees say anything
  /// The measurements must have grown by this part to train again, or by more.
  double growth = 0;
  bool beyond_growth = false;  // by more
  costmodel::TreeOptions trees;
};

/// Needs the library (costmodel::check_xgboost). Whether training is due is decided by learn; it
/// happens in prepare, so that the last measurements of a search train nothing.
class TreeScorer final : public Scorer {
 public:
  /// task and pool outlive it.
  TreeScorer(const Task& task, ThreadPool& pool, const TreeScorerOptions& options)
      : task_(task), pool_(pool), options_(options) {}

  void add(const Candidate& candidate, double median_ns) override;
  void learn(uint64_t seed) override;
  void prepare() override;
  bool is_trained() const override { return trees_ != nullptr; }
  /// Trees are taught labels from 0, for what did not run, to 1.
  bool has_zero() const override { return true; }
  std::vector<double> scores(std::span<const Candidate> candidates) override;

 private:
  using Features = std::shared_ptr<const costmodel::ProgramFeatures>;
  Features features_of(const Candidate& candidate) const;
  void train();

  const Task& task_;
  ThreadPool& pool_;
  const TreeScorerOptions options_;
  std::vector<Features> measured_;
  std::vector<double> median_ns_;  // 0: failed
  std::map<Fingerprint, Features> known_;
  std::unique_ptr<costmodel::TreeEnsemble> trees_;
  std::size_t num_due_ = 0;      // measurements that the trees are to know
  std::size_t num_trained_ = 0;  // that they do know
  uint64_t seed_ = 0;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_TREE_SCORER_H_
