// The timing protocol: from single timed runs to a measurement that says how far to trust it.
#ifndef PRUNERC_RUNTIME_MEASURE_H_
#define PRUNERC_RUNTIME_MEASURE_H_

#include "runtime/measurement.h"

#include <functional>
#include <span>
#include <vector>

namespace prunerc::runtime {

/// One sample as the device saw it.
struct RawSample {
  int64_t wall_ns = 0;
  /// The longest time that one of the kernel's threads spent off its CPU while the sample ran.
  int64_t lost_ns = 0;
  /// The part of it in which the kernel cannot have run: what the calling thread lost, if it has no
  /// workers, which take its tasks over.
  int64_t caller_lost_ns = 0;
};

/// The sample of a call that took so long, in which these threads had a CPU for so long.
RawSample sample_of(int64_t wall_ns, int64_t caller_cpu_ns, std::span<const int64_t> worker_cpu_ns);

/// Runs a kernel `runs` times and reports how long that took. Plain data in, plain data out: tests
/// use formulas.
using TimedRun = std::function<RawSample(int64_t runs)>;

/// Times one kernel: warms up until two samples agree, then samples until the error is small, the
/// time is up, or the kernel is clearly slower than the best known. Samples in which other work
/// took a CPU are retaken while time lasts.
Measurement time_kernel(const TimedRun& run, const TimingOptions& options);

/// Times several kernels in turn, one sample each per round in a rotating order, so that a drift of
/// the machine meets all of them alike. Returns one measurement per kernel, in their order.
std::vector<Measurement> time_interleaved(std::span<const TimedRun> runs,
                                          const TimingOptions& options);

/// Middle of the values (mean of the middle two); 0 if there are none.
double median(std::vector<double> values);

/// Fills median, minimum and spread from `samples_ns`.
void summarize(Measurement* measurement);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_MEASURE_H_
