// The outcome of running one kernel, and how it is timed.
#ifndef PRUNERC_RUNTIME_MEASUREMENT_H_
#define PRUNERC_RUNTIME_MEASUREMENT_H_

#include "ir/support/measure_status.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::runtime {

/// What a device says of one kernel. Of the list of statuses it uses kOk, kBuildError and those
/// from kTimeout on but kNoisy.
struct Measurement {
  MeasureStatus status = MeasureStatus::kDeviceLost;
  std::vector<double> samples_ns;  ///< time of one run, one value per sample, in the order taken
  double median_ns = 0;
  double min_ns = 0;
  double spread = 0;  ///< median absolute deviation / median
  int64_t runs_per_sample = 0;
  /// Samples that lost a CPU to other work; left out above unless `disturbed`.
  int64_t num_disturbed = 0;
  /// Too few samples had the CPUs to themselves. What the calling thread lost to other work is
  /// taken off, which leaves what that work did to the caches: good enough to rank.
  bool disturbed = false;
  /// A fixed instruction chain just after: compare between measurements for clock drift.
  double canary_ns = 0;
  /// A fixed piece of work on all threads of the kernel, once before and once after: the mean. Rises
  /// when the clock falls, and when others, also outside of a virtual machine, have part of the
  /// CPUs. 0: not taken.
  double reference_ns = 0;
  std::string detail;  ///< for people: what went wrong, and where

  bool ok() const { return status == MeasureStatus::kOk; }
  bool operator==(const Measurement&) const = default;
};

/// A run that went well, not timed.
inline Measurement succeeded() {
  Measurement result;
  result.status = MeasureStatus::kOk;
  return result;
}

/// A measurement without times.
inline Measurement failed(MeasureStatus status, std::string detail) {
  Measurement result;
  result.status = status;
  result.detail = std::move(detail);
  return result;
}

enum class CacheState : uint8_t {
  kWarm,     ///< buffers stay where the run before left them, as in a chain of operators
  kFlushed,  ///< every cache is overwritten before each run; runs are timed one by one
};

/// How to time a kernel. The defaults suit tuning; a final comparison takes more samples.
struct TimingOptions {
  /// A sample repeats the kernel until it lasts this long. Units: ns.
  int64_t min_sample_ns = 1'000'000;
  int32_t min_samples = 7;
  int32_t max_samples = 50;
  /// Stop when the standard error of the median is below this part of it.
  double target_error = 0.01;
  /// Stop sampling after this long, warm-up included. Units: ns.
  int64_t max_time_ns = 300'000'000;
  /// Best time known so far, 0 if none: a candidate clearly slower is not sampled to the end.
  /// Units: ns.
  double best_known_ns = 0;
  double early_stop_factor = 2.0;
  /// A run cannot be faster than this (a roofline); 0 if unknown. Units: ns.
  double min_possible_ns = 0;
  CacheState cache = CacheState::kWarm;
  /// Prepared constants are read from copies in turn, which together have so many bytes: more than the
  /// caches hold, and each run finds its constants in memory. 0: one copy, which stays warm.
  int64_t constants_bytes = 0;

  bool operator==(const TimingOptions&) const = default;
};

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_MEASUREMENT_H_
