#include "runtime/cuda/protocol.h"

#include "runtime/measure.h"

#include <algorithm>
#include <string>

namespace prunerc::runtime::cuda {
namespace {

constexpr int64_t kWarmUpLaunches = 2;
constexpr int64_t kFirstLaunches = 3;
constexpr double kSamplingNs = 20e6;
constexpr int64_t kMinLaunches = 5;
constexpr int64_t kMaxLaunches = 200;
constexpr int64_t kRounds = 10;
constexpr int64_t kLaunchesPerRound = 5;

/// Appends; false if the launches failed, and then *result says so. A number of one timer is not
/// compared with one of another: when the ladder goes down, what was taken before is dropped.
bool take(const TimedLaunches& launch, int64_t count, Measurement* result, TimerKind* timer) {
  Result<LaunchTimes> times = launch(count);
  if (!times.ok()) {
    *result = failed(MeasureStatus::kCrash, times.error().message());
    return false;
  }
  if (times->timer != *timer) result->samples_ns.clear();
  *timer = times->timer;
  result->samples_ns.insert(result->samples_ns.end(), times->ns.begin(), times->ns.end());
  return true;
}

void finish(Measurement* result, TimerKind timer, const TimingOptions& options) {
  if (!result->detail.empty() || result->samples_ns.empty()) return;
  result->status = MeasureStatus::kOk;
  result->runs_per_sample = 1;
  summarize(result);
  result->detail = "timer=" + std::string(to_string(timer));
  if (options.cache == CacheState::kFlushed) result->detail += ", cold L2";
  if (result->median_ns < options.min_possible_ns)
    *result = failed(MeasureStatus::kRunError, "a time below what the hardware can do: " +
                                                   std::to_string(result->median_ns) + " ns");
}

}  // namespace

std::string_view to_string(TimerKind kind) {
  switch (kind) {
    case TimerKind::kCupti: return "cupti";
    case TimerKind::kGraph: return "graph";
    case TimerKind::kEvents: return "events";
  }
  return "";
}

Measurement time_launches(const TimedLaunches& launch, const TimingOptions& options) {
  Measurement result;
  TimerKind timer = TimerKind::kEvents;
  if (!take(launch, kWarmUpLaunches, &result, &timer)) return result;
  result.samples_ns.clear();
  if (!take(launch, kFirstLaunches, &result, &timer)) return result;
  const double first_ns = median(result.samples_ns);
  const bool is_slow =
      options.best_known_ns > 0 && first_ns > options.early_stop_factor * options.best_known_ns;
  if (!is_slow) {
    const auto fitting = static_cast<int64_t>(kSamplingNs / std::max(1.0, first_ns));
    const int64_t least = std::max<int64_t>(kMinLaunches, options.min_samples);
    const int64_t count = std::clamp(fitting, least, std::max(least, kMaxLaunches));
    const auto affordable =
        static_cast<int64_t>(static_cast<double>(options.max_time_ns) / std::max(1.0, first_ns));
    const int64_t rest = std::min(count, std::max(affordable, kFirstLaunches)) - kFirstLaunches;
    if (rest > 0 && !take(launch, rest, &result, &timer)) return result;
  }
  finish(&result, timer, options);
  return result;
}

std::vector<Measurement> time_interleaved(std::span<const TimedLaunches> launches,
                                          const TimingOptions& options) {
  const size_t count = launches.size();
  std::vector<Measurement> results(count);
  std::vector<TimerKind> timers(count, TimerKind::kEvents);
  std::vector<char> alive(count, 1);
  for (size_t i = 0; i < count; ++i) {
    alive[i] = take(launches[i], kWarmUpLaunches, &results[i], &timers[i]) ? 1 : 0;
    if (alive[i] != 0) results[i].samples_ns.clear();
  }
  for (int64_t round = 0; round < kRounds; ++round) {
    for (size_t i = 0; i < count; ++i) {
      const size_t at = (i + static_cast<size_t>(round)) % count;
      if (alive[at] == 0) continue;
      alive[at] = take(launches[at], kLaunchesPerRound, &results[at], &timers[at]) ? 1 : 0;
    }
  }
  for (size_t i = 0; i < count; ++i) finish(&results[i], timers[i], options);
  return results;
}

}  // namespace prunerc::runtime::cuda
