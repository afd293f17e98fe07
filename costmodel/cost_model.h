// CostModel: relative scores of programs. Sees programs, never schedules, so that it can learn from
// text.
#ifndef PRUNERC_COSTMODEL_COST_MODEL_H_
#define PRUNERC_COSTMODEL_COST_MODEL_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"

#include <cstdint>
#include <memory>
#include <span>

namespace prunerc::costmodel {

/// What is scored: a scheduled program on a target. Borrowed.
struct ModelInput {
  const ir::Program* program = nullptr;
  const ir::Target* target = nullptr;
};

/// A measured program to learn from.
struct Sample {
  ModelInput input;
  int32_t task = 0;  // only programs of one task are compared with each other
  double median_ns = 0;
};

struct FitOptions {
  uint64_t seed = 0;
};

/// Higher is faster. stddev is 0 where the model does not know its own uncertainty.
struct Score {
  double mean = 0;
  double stddev = 0;
  double predicted_ns = 0;  // 0 for models without a unit
};

/// Only the order within one task is meaningful.
/// Threads: predict may be called from several threads at once.
class CostModel {
 public:
  virtual ~CostModel() = default;
  /// scores[i] belongs to inputs[i]; both spans have one length.
  virtual void predict(std::span<const ModelInput> inputs, std::span<Score> scores) const = 0;
  /// A model that has also learned from these samples; null if this model does not learn.
  virtual Result<std::unique_ptr<CostModel>> updated(std::span<const Sample> samples,
                                                     const FitOptions& options) const = 0;
};

/// Scores by hash of the program: the baseline that any model must beat.
std::unique_ptr<CostModel> make_random_model(uint64_t seed);

/// Analytic latency (latency/roofline.h); score is -log(ns).
std::unique_ptr<CostModel> make_roofline_model();

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_COST_MODEL_H_
