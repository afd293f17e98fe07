// Kernels with arrays of their own, timed in turns.
#ifndef PRUNERC_TESTS_BENCH_ALGEBRA_TIMED_KERNEL_H_
#define PRUNERC_TESTS_BENCH_ALGEBRA_TIMED_KERNEL_H_

#include "tools/driver/prunerc.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::bench {

/// A kernel of f32 arrays, whose inputs are uniform in [-1, 1].
class TimedKernel {
 public:
  TimedKernel(const ir::Program& spec, Kernel kernel);
  /// Seconds of a run, over some ms.
  double sample();
  /// Largest distance between outputs of the last runs, as a part of the output's largest; infinity
  /// where one is no number. Of kernels of equal ports, whose inputs are equal.
  double apart_from(const TimedKernel& other) const;

 private:
  double sample_of(int repeats);

  Kernel kernel_;
  std::vector<std::vector<float>> arrays_;
  std::vector<const void*> inputs_;
  std::vector<void*> outputs_;
  std::vector<int64_t> output_sizes_;
  int repeats_ = 1;
};

struct InTurns {
  double first_us = 0, second_us = 0;  // medians
  double ratio = 0;                    // of the medians, first / second
  std::string spread;  // tenth to ninetieth of a hundred ratios, and of how many turns
  double apart = 0;    // apart_from
};
/// Whose outputs are further apart computes something else, and no speed counts.
inline constexpr double kMostApart = 1e-2;
InTurns time_in_turns(TimedKernel& first, TimedKernel& second);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_ALGEBRA_TIMED_KERNEL_H_
