// Gradient-boosted trees over statement features, by the library xgboost if it is installed: the
// model that Ansor and MetaSchedule learn with.
#ifndef PRUNERC_COSTMODEL_XGB_H_
#define PRUNERC_COSTMODEL_XGB_H_

#include "costmodel/feature/statement.h"
#include "ir/support/result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace prunerc::costmodel {

/// How the trees grow. The defaults are MetaSchedule's, but for the number of trees, of which its
/// limit is far more than training needs.
struct TreeOptions {
  int max_depth = 10;
  double gamma = 0.001;
  double min_child_weight = 0;
  double eta = 0.2;
  int max_trees = 150;
  /// Training ends when the weighted error of a program has not fallen by a thousandth of itself in
  /// so many trees.
  int patience = 12;
  uint64_t seed = 0;
};

/// For programs of many tasks: those of TenSet's XGBModelInternal, shallower and of more rows a
/// leaf.
TreeOptions trees_of_many_tasks();

/// Features of one program: a vector for each statement.
using ProgramFeatures = std::vector<StatementFeatures>;

/// Trees that score statements; a program's score is the sum over its statements. One thread, so
/// that equal data gives equal trees.
/// Threads: predict may be called from several threads at once; they take turns.
class TreeEnsemble {
 public:
  /// Labels in [0, 1], higher is faster; a program weighs as much as its label, the fast ones more.
  /// Errors: ModelLibrary if xgboost is not there; ModelData if no program has a statement, or the
  /// library refuses.
  static Result<TreeEnsemble> fit(std::span<const ProgramFeatures* const> programs,
                                  std::span<const float> labels, const TreeOptions& options);
  /// Any finite labels, higher is faster, and positive weights.
  static Result<TreeEnsemble> fit(std::span<const ProgramFeatures* const> programs,
                                  std::span<const float> labels, std::span<const float> weights,
                                  const TreeOptions& options);
  TreeEnsemble(TreeEnsemble&&) noexcept;
  TreeEnsemble& operator=(TreeEnsemble&&) noexcept;
  ~TreeEnsemble();

  /// scores[i] belongs to programs[i]; a program without statements gets 0.
  void predict(std::span<const ProgramFeatures* const> programs, std::span<double> scores) const;
  int num_trees() const;

 private:
  struct Impl;
  explicit TreeEnsemble(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Whether the library is there. Errors: ModelLibrary.
Result<void> check_xgboost();

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_XGB_H_
