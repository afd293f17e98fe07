// Optimizers: Adam and plain gradient descent over the vector of parameters, clipping, and how the
// learning rate changes.
#ifndef PRUNERC_COSTMODEL_NN_OPTIMIZER_H_
#define PRUNERC_COSTMODEL_NN_OPTIMIZER_H_

#include "costmodel/nn/matrix.h"

#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::costmodel::nn {

enum class OptimizerKind : uint8_t { kAdam, kSgd };

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::kAdam;
  double weight_decay = 0;  // added to the gradient, as PyTorch's Adam and SGD do
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double momentum = 0;  // of kSgd
  bool operator==(const OptimizerOptions&) const = default;
};

/// What an optimizer remembers between steps; starts empty.
template <typename T>
struct OptimizerState {
  Vector<T> mean, square;
  int64_t steps = 0;
};

/// One step against the gradient.
template <typename T>
void optimizer_step(const OptimizerOptions& options, double lr, std::span<const T> gradient,
                    OptimizerState<T>* state, std::span<T> values);

/// Scales the gradient so that its L2 norm is at most `limit` (none if 0); returns what it was.
template <typename T>
double clip_norm(double limit, std::span<T> gradient);

enum class ScheduleKind : uint8_t { kConstant, kStep, kCosine };

/// The learning rate as a factor of the first one.
struct LearningSchedule {
  ScheduleKind kind = ScheduleKind::kConstant;
  double factor = 0.5;  // of kStep: for each period; of kCosine: what is left at the end
  int period = 1;       // of kStep, in epochs
  double warmup = 0;    // part of all steps in which the rate rises from 0, for any kind
  bool operator==(const LearningSchedule&) const = default;
};

/// The factor at `step` of `num_steps`, which are `epochs` epochs. Steps count from 0.
double learning_factor(const LearningSchedule& schedule, int64_t step, int64_t num_steps,
                       int epochs);

}  // namespace prunerc::costmodel::nn

#endif  // PRUNERC_COSTMODEL_NN_OPTIMIZER_H_
