// How long kernels ran, as the GPU saw it: CUPTI's activity records.
#ifndef PRUNERC_RUNTIME_CUDA_CUPTI_TIMER_H_
#define PRUNERC_RUNTIME_CUDA_CUPTI_TIMER_H_

#include "ir/support/result.h"

#include <optional>
#include <string>
#include <vector>

namespace prunerc::runtime::cuda {

/// One per process, since CUPTI knows one client. Records are collected between collect() and
/// take(); CUPTI may deliver them on a thread of its own.
class CuptiTimer {
 public:
  /// Opens CUPTI ($PRUNERC_CUPTI, else as cuda_library_candidates says) and enables kernel records;
  /// "present" means that enabling worked. The context must exist. Errors: CudaMissing, with the
  /// reason: no library, another profiler in this process, no driver.
  static Result<CuptiTimer*> start();

  /// Forgets what was collected.
  void collect();
  /// Durations in ns of the kernels launched since collect(), in the order of their launches.
  /// Nothing if the records are not all there: dropped, without times, or not `expected` many; the
  /// caller takes another timer then. Call after the stream was synchronized.
  std::optional<std::vector<double>> take(int64_t expected);

 private:
  CuptiTimer() = default;
};

/// The library that start() would open; nothing is enabled. Errors: CudaMissing.
Result<std::string> find_cupti();

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_CUPTI_TIMER_H_
