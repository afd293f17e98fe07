#include "runtime/cuda/timer.h"

#include "runtime/cuda/canary.h"
#include "runtime/measure.h"

#include <algorithm>

namespace prunerc::runtime::cuda {
namespace {

constexpr int64_t kGraphCopies = 10;
constexpr int kEmptyLaunches = 21;
/// An H200 has 60 MB of L2; writing this much takes some 60 us.
constexpr int64_t kMinFlushBytes = int64_t{256} << 20;
constexpr unsigned char kFlushValue = 0x3C;
constexpr double kNsPerMs = 1e6;

}  // namespace

Result<LaunchTimer> LaunchTimer::make(const Driver& api, Stream stream) {
  LaunchTimer timer;
  timer.api_ = &api;
  timer.stream_ = stream;
  PRUNERC_CUDA(api, cuEventCreate, &timer.begin_, 0);
  PRUNERC_CUDA(api, cuEventCreate, &timer.end_, 0);
  Module module = nullptr;
  PRUNERC_CUDA(api, cuModuleLoadData, &module, kCanaryPtx);
  PRUNERC_CUDA(api, cuModuleGetFunction, &timer.empty_, module, "prunerc_empty");
  PRUNERC_CUDA(api, cuModuleGetFunction, &timer.canary_, module, "prunerc_canary");
  PRUNERC_TRY(DeviceBuffer scratch, DeviceBuffer::allocate(api, sizeof(float)));
  timer.scratch_.emplace(std::move(scratch));
  int l2_bytes = 0;
  PRUNERC_CUDA(api, cuDeviceGetAttribute, &l2_bytes, kAttrL2Bytes, 0);
  timer.flush_bytes_ = std::max(kMinFlushBytes, int64_t{2} * l2_bytes);
  Result<CuptiTimer*> cupti = CuptiTimer::start();
  if (cupti.ok()) timer.cupti_ = *cupti;
  return timer;
}

Result<void> LaunchTimer::reserve(CacheState cache) {
  if (cache == CacheState::kWarm || flush_) return {};
  PRUNERC_TRY(DeviceBuffer buffer, DeviceBuffer::allocate(*api_, flush_bytes_));
  flush_.emplace(std::move(buffer));
  return {};
}

Result<void> LaunchTimer::flush(CacheState cache) {
  if (cache == CacheState::kWarm) return {};
  PRUNERC_TRY_VOID(reserve(cache));
  return flush_->fill(kFlushValue, stream_);
}

Result<std::optional<LaunchTimes>> LaunchTimer::time_by_cupti(const DeviceKernel& kernel,
                                                              CacheState cache, int64_t count) {
  if (cupti_ == nullptr) return std::optional<LaunchTimes>();
  cupti_->collect();
  for (int64_t i = 0; i < count; ++i) {
    PRUNERC_TRY_VOID(flush(cache));
    PRUNERC_TRY_VOID(kernel.launch(stream_));
  }
  PRUNERC_CUDA(*api_, cuStreamSynchronize, stream_);
  const int64_t each = kernel.num_launches();
  const std::optional<std::vector<double>> durations = cupti_->take(count * each);
  // Once records are missing they are not trusted again.
  if (!durations) cupti_ = nullptr;
  if (!durations) return std::optional<LaunchTimes>();
  LaunchTimes times{.timer = TimerKind::kCupti, .ns = {}};
  for (int64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < each; ++j) sum += (*durations)[static_cast<size_t>(i * each + j)];
    times.ns.push_back(sum);
  }
  return std::optional(times);
}

template <typename Fn>
Result<double> LaunchTimer::between_events(Fn&& enqueue) {
  PRUNERC_CUDA(*api_, cuEventRecord, begin_, stream_);
  PRUNERC_TRY_VOID(enqueue());
  PRUNERC_CUDA(*api_, cuEventRecord, end_, stream_);
  PRUNERC_CUDA(*api_, cuEventSynchronize, end_);
  float ms = 0;
  PRUNERC_CUDA(*api_, cuEventElapsedTime, &ms, begin_, end_);
  return static_cast<double>(ms) * kNsPerMs;
}

template <typename Fn>
Result<std::optional<double>> LaunchTimer::time_graph(Fn&& enqueue) {
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  // A driver that refuses is not an error yet: the next timer will meet what is.
  if (api_->cuStreamBeginCapture(stream_, kCaptureThreadLocal) != 0) return std::optional<double>();
  Result<void> recorded;
  for (int64_t i = 0; i < kGraphCopies && recorded.ok(); ++i) recorded = enqueue();
  const Code ended = api_->cuStreamEndCapture(stream_, &graph);
  if (!recorded.ok() || ended != 0 || api_->cuGraphInstantiate(&exec, graph, 0) != 0) {
    if (graph != nullptr) api_->cuGraphDestroy(graph);
    return std::optional<double>();
  }
  const auto run = [&]() -> Result<void> {
    PRUNERC_CUDA(*api_, cuGraphLaunch, exec, stream_);
    return {};
  };
  Result<double> warm_up = between_events(run);
  Result<double> elapsed = between_events(run);
  api_->cuGraphExecDestroy(exec);
  api_->cuGraphDestroy(graph);
  if (!warm_up.ok()) return warm_up.error();
  if (!elapsed.ok()) return elapsed.error();
  return std::optional(*elapsed);
}

Result<std::optional<LaunchTimes>> LaunchTimer::time_by_graph(const DeviceKernel& kernel,
                                                              CacheState cache, int64_t count) {
  if (!graph_works_) return std::optional<LaunchTimes>();
  // Allocated before a capture, in which nothing may be allocated.
  PRUNERC_TRY_VOID(flush(cache));
  double flushes_ns = 0;
  if (cache == CacheState::kFlushed) {
    PRUNERC_TRY(const std::optional<double> alone, time_graph([&] { return flush(cache); }));
    graph_works_ = alone.has_value();
    if (!graph_works_) return std::optional<LaunchTimes>();
    flushes_ns = *alone;
  }
  LaunchTimes times{.timer = TimerKind::kGraph, .ns = {}};
  for (int64_t done = 0; done < count; done += kGraphCopies) {
    PRUNERC_TRY(const std::optional<double> elapsed, time_graph([&]() -> Result<void> {
                  PRUNERC_TRY_VOID(flush(cache));
                  return kernel.launch(stream_);
                }));
    graph_works_ = elapsed.has_value();
    if (!graph_works_) return std::optional<LaunchTimes>();
    times.ns.push_back((*elapsed - flushes_ns) / static_cast<double>(kGraphCopies));
  }
  return std::optional(times);
}

Result<LaunchTimes> LaunchTimer::time_by_events(const DeviceKernel& kernel, CacheState cache,
                                                int64_t count) {
  if (empty_ns_ == 0) {
    std::vector<double> empty;
    for (int i = 0; i < kEmptyLaunches; ++i) {
      PRUNERC_TRY(const double one, between_events([&]() -> Result<void> {
                    PRUNERC_CUDA(*api_, cuLaunchKernel, empty_, 1, 1, 1, 1, 1, 1, 0, stream_,
                                 nullptr, nullptr);
                    return {};
                  }));
      empty.push_back(one);
    }
    empty_ns_ = median(std::move(empty));
  }
  LaunchTimes times{.timer = TimerKind::kEvents, .ns = {}};
  const double launches_ns = empty_ns_ * static_cast<double>(kernel.num_launches());
  for (int64_t i = 0; i < count; ++i) {
    PRUNERC_TRY_VOID(flush(cache));
    PRUNERC_TRY(const double one, between_events([&] { return kernel.launch(stream_); }));
    times.ns.push_back(std::max(0.0, one - launches_ns));
  }
  return times;
}

Result<LaunchTimes> LaunchTimer::time(const DeviceKernel& kernel, CacheState cache, int64_t count) {
  PRUNERC_TRY(std::optional<LaunchTimes> by_cupti, time_by_cupti(kernel, cache, count));
  if (by_cupti) return *std::move(by_cupti);
  PRUNERC_TRY(std::optional<LaunchTimes> by_graph, time_by_graph(kernel, cache, count));
  if (by_graph) return *std::move(by_graph);
  return time_by_events(kernel, cache, count);
}

Result<double> LaunchTimer::canary_ns() {
  DevicePtr out = scratch_->data();
  void* params[] = {&out};
  return between_events([&]() -> Result<void> {
    PRUNERC_CUDA(*api_, cuLaunchKernel, canary_, 1, 1, 1, 1, 1, 1, 0, stream_, params, nullptr);
    return {};
  });
}

}  // namespace prunerc::runtime::cuda
