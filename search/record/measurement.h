// What is known of a candidate once it was built, run or verified.
#ifndef PRUNERC_SEARCH_RECORD_MEASUREMENT_H_
#define PRUNERC_SEARCH_RECORD_MEASUREMENT_H_

#include "ir/support/measure_status.h"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::search {

/// Number of outcomes of each status, indexed by it.
using StatusCounts = std::array<int64_t, kNumMeasureStatuses>;

/// What the machine was like while a candidate was timed. All 0: nobody knows.
struct MachineState {
  double reference_ns = 0;  // of a fixed piece of work on the kernel's threads, before and after
  double clock_ghz = 0;     // of one thread, just after
  double load = 0;          // of the system over the last minute, as `uptime` prints it
  bool operator==(const MachineState&) const = default;
};

/// What is known after building, running or verifying one candidate.
struct Measurement {
  MeasureStatus status = MeasureStatus::kRejected;
  std::vector<double> samples_ns;  // every sample, in order
  double median_ns = 0;            // of samples_ns; 0 unless ok
  double spread = 0;               // median absolute deviation / median
  double build_s = 0;
  double measure_s = 0;
  double verify_s = 0;
  bool disturbed = false;  // timed, but other work took the CPU in most samples
  MachineState machine;
  std::string detail;    // the cause of a failure
  std::string evidence;  // verification: what was compared and how far off, e.g. "65536 outputs,
                         // max error 0.3 of bound"
  bool operator==(const Measurement&) const = default;
  bool ok() const { return status == MeasureStatus::kOk; }
};

/// The middle value, or the mean of the two; 0 of none.
double median_of(std::vector<double> values);

/// Median and spread from the samples; status stays.
void summarize_samples(Measurement& measurement);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_MEASUREMENT_H_
