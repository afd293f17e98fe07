// What the benchmarks of costmodel that train networks share.
#ifndef PRUNERC_TESTS_BENCH_COSTMODEL_TRAIN_H_
#define PRUNERC_TESTS_BENCH_COSTMODEL_TRAIN_H_

#include "costmodel/model/dataset.h"
#include "costmodel/model/model.h"
#include "ir/support/parallel.h"
#include "search/model/quality.h"
#include "search/record/corpus.h"
#include "tests/bench/costmodel/rows.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace prunerc::bench {

/// One number of several seeds.
struct Spread {
  std::vector<double> values;
  double mean() const;
  /// "0.910 to 0.930".
  std::string range() const;
};

/// A share of the judged pools' operators is held out, of each class, from training on every
/// platform; another one for each seed.
search::Split split_by_operator(const search::Corpus& corpus, int seed,
                                const ModelOptions& options);

/// Some programs of a dataset, by index or by task.
costmodel::model::Dataset select(const costmodel::model::Dataset& data,
                                 const std::vector<int>& which);
costmodel::model::Dataset of_tasks(const costmodel::model::Dataset& data,
                                   const std::set<int32_t>& tasks);

/// Trained from nothing by its recipe.
costmodel::model::Model train_network(const costmodel::model::Dataset& data,
                                      costmodel::model::NetworkKind kind, uint64_t seed,
                                      const ModelOptions& options, ThreadPool& threads);

/// Mean over the tasks of `test`.
search::TaskQuality judge(const costmodel::model::Model& model,
                          const costmodel::model::Dataset& test, ThreadPool& threads);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_COSTMODEL_TRAIN_H_
