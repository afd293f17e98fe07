#include "runtime/cuda/timer.h"

#include "runtime/cuda/canary.h"
#include "runtime/measure.h"

#include <algorithm>

namespace prunerc::runtime::cuda {
namespace {

constexpr int64_t kGraphCopies = 10;
constexpr size_t kEmptyLaunches = 21;
/// An H200 has 60 MB of L2; writing this much takes some 60 us.
constexpr int64_t kMinFlushBytes = int64_t{256} << 20;
constexpr unsigned char kFlushValue = 0x3C;
constexpr int64_t kFlushSamples = 5;

/// The distance of the quartiles: one late sample does not count.
double spread_of(std::vector<double> samples) {
  if (samples.empty()) return 0;
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() * 3 / 4] - samples[samples.size() / 4];
}

/// What samples take beyond `times` times the median of `others`. None if their median does not
/// stand out of the spread of those; else without samples that are not above 0.
std::vector<double> beyond(const std::vector<double>& samples, const std::vector<double>& others,
                           double times) {
  const double taken_off = others.empty() ? 0 : times * median(others);
  std::vector<double> rest;
  for (const double ns : samples) {
    if (ns > taken_off) rest.push_back(ns - taken_off);
  }
  if (samples.empty() || median(samples) - taken_off <= times * spread_of(others)) rest.clear();
  return rest;
}
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
Result<std::vector<double>> LaunchTimer::time_graph(int64_t num_samples, Fn&& enqueue) {
  Graph graph = nullptr;
  GraphExec exec = nullptr;
  std::vector<double> times;
  // A driver that refuses is not an error yet: the next timer will meet what is.
  if (api_->cuStreamBeginCapture(stream_, kCaptureThreadLocal) != 0) return times;
  Result<void> recorded;
  for (int64_t i = 0; i < kGraphCopies && recorded.ok(); ++i) recorded = enqueue();
  const Code ended = api_->cuStreamEndCapture(stream_, &graph);
  if (!recorded.ok() || ended != 0 || api_->cuGraphInstantiate(&exec, graph, 0) != 0) {
    if (graph != nullptr) api_->cuGraphDestroy(graph);
    return times;
  }
  const auto run = [&]() -> Result<void> {
    PRUNERC_CUDA(*api_, cuGraphLaunch, exec, stream_);
    return {};
  };
  Result<double> elapsed = between_events(run);  // the first one warms up
  for (int64_t i = 0; i < num_samples && elapsed.ok(); ++i) {
    elapsed = between_events(run);
    if (elapsed.ok()) times.push_back(*elapsed);
  }
  api_->cuGraphExecDestroy(exec);
  api_->cuGraphDestroy(graph);
  if (!elapsed.ok()) return elapsed.error();
  return times;
}

Result<std::optional<LaunchTimes>> LaunchTimer::time_by_graph(const DeviceKernel& kernel,
                                                              CacheState cache, int64_t count) {
  if (!graph_works_) return std::optional<LaunchTimes>();
  graph_works_ = false;  // until there are times
  // Allocated before a capture, in which nothing may be allocated.
  PRUNERC_TRY_VOID(flush(cache));
  std::vector<double> flushes;
  if (cache == CacheState::kFlushed) {
    PRUNERC_TRY(flushes, time_graph(kFlushSamples, [&] { return flush(cache); }));
    if (flushes.empty()) return std::optional<LaunchTimes>();
  }
  const int64_t num_samples = (count + kGraphCopies - 1) / kGraphCopies;
  PRUNERC_TRY(const std::vector<double> all, time_graph(num_samples, [&]() -> Result<void> {
                PRUNERC_TRY_VOID(flush(cache));
                return kernel.launch(stream_);
              }));
  LaunchTimes times{.timer = TimerKind::kGraph, .ns = beyond(all, flushes, 1)};
  if (times.ns.empty()) return std::optional<LaunchTimes>();
  for (double& ns : times.ns) ns /= static_cast<double>(kGraphCopies);
  graph_works_ = true;
  return std::optional(times);
}

Result<void> LaunchTimer::measure_empty() {
  while (empty_ns_.size() < kEmptyLaunches) {
    PRUNERC_TRY(const double one, between_events([&]() -> Result<void> {
                  PRUNERC_CUDA(*api_, cuLaunchKernel, empty_, 1, 1, 1, 1, 1, 1, 0, stream_, nullptr,
                               nullptr);
                  return {};
                }));
    empty_ns_.push_back(one);
  }
  return {};
}

Result<LaunchTimes> LaunchTimer::time_by_events(const DeviceKernel& kernel, CacheState cache,
                                                int64_t count) {
  PRUNERC_TRY_VOID(measure_empty());
  std::vector<double> all;
  for (int64_t i = 0; i < count; ++i) {
    PRUNERC_TRY_VOID(flush(cache));
    PRUNERC_TRY(const double one, between_events([&] { return kernel.launch(stream_); }));
    all.push_back(one);
  }
  const auto launches = static_cast<double>(kernel.num_launches());
  LaunchTimes times{.timer = TimerKind::kEvents, .ns = beyond(all, empty_ns_, launches)};
  if (times.ns.empty()) {
    return error(Diag::kCudaTooShort, median(all) - launches * median(empty_ns_),
                 launches * spread_of(empty_ns_));
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
