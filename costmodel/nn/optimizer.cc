#include "costmodel/nn/optimizer.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace prunerc::costmodel::nn {
namespace {

template <typename T>
void adam_step(const OptimizerOptions& options, double lr, std::span<const T> gradient,
               OptimizerState<T>* state, std::span<T> values) {
  const std::size_t count = values.size();
  state->mean.resize(count, 0);
  state->square.resize(count, 0);
  const auto steps = static_cast<double>(++state->steps);
  const auto beta1 = static_cast<T>(options.beta1), beta2 = static_cast<T>(options.beta2);
  const auto decay = static_cast<T>(options.weight_decay);
  const auto epsilon = static_cast<T>(options.epsilon);
  const auto rate = static_cast<T>(lr / (1 - std::pow(options.beta1, steps)));
  const auto root = static_cast<T>(1 / std::sqrt(1 - std::pow(options.beta2, steps)));
  const T* const g = gradient.data();
  T* const mean = state->mean.data();
  T* const square = state->square.data();
  T* const value = values.data();
  for (std::size_t i = 0; i < count; ++i) {
    const T d = g[i] + decay * value[i];
    mean[i] = beta1 * mean[i] + (1 - beta1) * d;
    square[i] = beta2 * square[i] + (1 - beta2) * d * d;
    value[i] -= rate * mean[i] / (std::sqrt(square[i]) * root + epsilon);
  }
}

template <typename T>
void sgd_step(const OptimizerOptions& options, double lr, std::span<const T> gradient,
              OptimizerState<T>* state, std::span<T> values) {
  const std::size_t count = values.size();
  state->mean.resize(count, 0);
  ++state->steps;
  const auto decay = static_cast<T>(options.weight_decay);
  const auto momentum = static_cast<T>(options.momentum);
  const auto rate = static_cast<T>(lr);
  for (std::size_t i = 0; i < count; ++i) {
    T& mean = state->mean[i];
    mean = momentum * mean + gradient[i] + decay * values[i];
    values[i] -= rate * mean;
  }
}

}  // namespace

template <typename T>
void optimizer_step(const OptimizerOptions& options, double lr, std::span<const T> gradient,
                    OptimizerState<T>* state, std::span<T> values) {
  switch (options.kind) {
    case OptimizerKind::kAdam: return adam_step(options, lr, gradient, state, values);
    case OptimizerKind::kSgd: return sgd_step(options, lr, gradient, state, values);
  }
}

template <typename T>
double clip_norm(double limit, std::span<T> gradient) {
  double square = 0;
  for (const T g : gradient) square += static_cast<double>(g) * static_cast<double>(g);
  const double norm = std::sqrt(square);
  if (limit > 0 && norm > limit) {
    const auto factor = static_cast<T>(limit / norm);
    for (T& g : gradient) g *= factor;
  }
  return norm;
}

double learning_factor(const LearningSchedule& schedule, int64_t step, int64_t num_steps,
                       int epochs) {
  const double done =
      num_steps == 0 ? 0 : static_cast<double>(step) / static_cast<double>(num_steps);
  double factor = 1;
  switch (schedule.kind) {
    case ScheduleKind::kConstant: break;
    case ScheduleKind::kStep: {
      const int64_t epoch = num_steps == 0 ? 0 : step * epochs / num_steps;
      factor = std::pow(schedule.factor, static_cast<double>(epoch / schedule.period));
      break;
    }
    case ScheduleKind::kCosine:
      factor =
          schedule.factor + (1 - schedule.factor) * 0.5 * (1 + std::cos(std::numbers::pi * done));
      break;
  }
  if (done < schedule.warmup) {
    // The rise may end within a step.
    const double rising = schedule.warmup * static_cast<double>(num_steps);
    factor *= std::min(1.0, (static_cast<double>(step) + 1) / rising);
  }
  return factor;
}

#define PRUNERC_INSTANTIATE(T)                                                         \
  template void optimizer_step<T>(const OptimizerOptions&, double, std::span<const T>, \
                                  OptimizerState<T>*, std::span<T>);                   \
  template double clip_norm<T>(double, std::span<T>);
PRUNERC_INSTANTIATE(float)
PRUNERC_INSTANTIATE(double)
#undef PRUNERC_INSTANTIATE

}  // namespace prunerc::costmodel::nn
