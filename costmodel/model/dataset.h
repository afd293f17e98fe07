// Dataset: measured programs as features, in memory, and the lists that rankings are learned from.
#ifndef PRUNERC_COSTMODEL_MODEL_DATASET_H_
#define PRUNERC_COSTMODEL_MODEL_DATASET_H_

#include "costmodel/model/batch.h"
#include "ir/support/rng.h"

#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::costmodel::model {

/// What was measured of one program.
struct Outcome {
  double ns = 0;  // 0: did not run
  int32_t task = 0;
  int32_t platform = 0;
};

/// inputs.programs == outcomes.size(). Only programs of one task on one platform are compared.
struct Dataset {
  Batch<float> inputs;
  std::vector<Outcome> outcomes;

  void add(const ProgramView& program, const Outcome& outcome);
  int size() const { return inputs.programs; }
};

/// Indices of the programs of each task on each platform.
std::vector<std::vector<int>> groups_of(const Dataset& data);

/// What networks learn, by program.
struct Targets {
  std::vector<float> label;        // best time of its group / its time; 0 if it did not run
  std::vector<float> log_latency;  // less the mean of its group; infinite if it did not run
};
Targets targets_of(const Dataset& data);

/// Cuts `which` at random into lists of one group each, of about `length`; groups of a single
/// program are left out. The order of the lists is random too.
std::vector<std::vector<int>> draw_lists(const Dataset& data, std::span<const int> which,
                                         int length, Rng& rng);

/// Part of the pairs of one group with unequal times that the scores order rightly, equal scores by
/// half; mean over groups that have such a pair, NaN if none has. Of a large group each program is
/// compared with the next 512 in `which`. scores[i] is of which[i].
double pairwise_accuracy(const Dataset& data, std::span<const int> which,
                         std::span<const float> scores);

}  // namespace prunerc::costmodel::model

#endif  // PRUNERC_COSTMODEL_MODEL_DATASET_H_
