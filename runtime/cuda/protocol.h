// How launches on a GPU become a measurement: plain numbers in, plain data out.
#ifndef PRUNERC_RUNTIME_CUDA_PROTOCOL_H_
#define PRUNERC_RUNTIME_CUDA_PROTOCOL_H_

#include "ir/support/result.h"
#include "runtime/measurement.h"

#include <functional>
#include <span>
#include <vector>

namespace prunerc::runtime::cuda {

/// Which clock a number comes from; see the ladder in DESIGN.md.
enum class TimerKind : uint8_t { kCupti, kGraph, kEvents };
std::string_view to_string(TimerKind kind);

/// Times of launches in ns, one per launch, in order.
struct LaunchTimes {
  TimerKind timer = TimerKind::kEvents;
  std::vector<double> ns;
};

/// Launches the kernel `count` times and says how long each launch took on the GPU.
using TimedLaunches = std::function<Result<LaunchTimes>(int64_t count)>;

/// Warms up until two launches in turn take about as long, takes three launches (a candidate that is
/// clearly slower than the best known is left there), then as many as fit into 20 ms, at least
/// min_samples and at most 200. The statistic is the median; `detail` says which timer. An error of
/// a launch is kCrash, a time too short for the timer kRunError.
Measurement time_launches(const TimedLaunches& launch, const TimingOptions& options);

/// Several kernels in turn, some launches each per round, in a rotating order: clocks and
/// temperature meet all alike. At least 50 launches each.
std::vector<Measurement> time_interleaved(std::span<const TimedLaunches> launches,
                                          const TimingOptions& options);

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_PROTOCOL_H_
