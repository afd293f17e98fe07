// Times launches by the best clock that works: CUPTI, else a graph between events, else events.
#ifndef PRUNERC_RUNTIME_CUDA_TIMER_H_
#define PRUNERC_RUNTIME_CUDA_TIMER_H_

#include "runtime/cuda/cupti_timer.h"
#include "runtime/cuda/kernel.h"
#include "runtime/cuda/protocol.h"

#include <optional>

namespace prunerc::runtime::cuda {

class LaunchTimer {
 public:
  /// Needs a context. Errors: CudaCall.
  static Result<LaunchTimer> make(const Driver& api, Stream stream);
  ~LaunchTimer() = default;
  LaunchTimer(LaunchTimer&&) = default;
  LaunchTimer& operator=(LaunchTimer&&) = delete;

  /// Launches the kernel `count` times; with kFlushed a memset of twice the L2 and more lies before
  /// each launch and is not part of its time. CUPTI and events give a time for each launch; a graph
  /// gives means of kGraphCopies. All times are above 0. Errors: CudaCall, CudaTooShort.
  Result<LaunchTimes> time(const DeviceKernel& kernel, CacheState cache, int64_t count);

  /// Allocates what clears the cache, so that time() does not. Errors: CudaCall.
  Result<void> reserve(CacheState cache);

  /// Time of a fixed chain of dependent operations. Units: ns. Errors: CudaCall.
  Result<double> canary_ns();

 private:
  LaunchTimer() = default;
  Result<void> flush(CacheState cache);
  Result<std::optional<LaunchTimes>> time_by_cupti(const DeviceKernel& kernel, CacheState cache,
                                                   int64_t count);
  Result<std::optional<LaunchTimes>> time_by_graph(const DeviceKernel& kernel, CacheState cache,
                                                   int64_t count);
  Result<LaunchTimes> time_by_events(const DeviceKernel& kernel, CacheState cache, int64_t count);
  /// Of what `enqueue` puts into the stream.
  template <typename Fn>
  Result<double> between_events(Fn&& enqueue);
  /// Times of `num_samples` runs of kGraphCopies of what `enqueue` does; none if it cannot be
  /// captured.
  template <typename Fn>
  Result<std::vector<double>> time_graph(int64_t num_samples, Fn&& enqueue);
  /// What an empty launch takes between events, measured once.
  Result<void> measure_empty();

  const Driver* api_ = nullptr;
  Stream stream_ = nullptr;
  Event begin_ = nullptr;
  Event end_ = nullptr;
  CuptiTimer* cupti_ = nullptr;
  Function empty_ = nullptr;
  Function canary_ = nullptr;
  std::optional<DeviceBuffer> scratch_;
  std::optional<DeviceBuffer> flush_;
  int64_t flush_bytes_ = 0;
  bool graph_works_ = true;
  std::vector<double> empty_ns_;
};

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_TIMER_H_
