#include "runtime/cuda/protocol.h"

#include "runtime/measure.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace prunerc::runtime::cuda {
namespace {

// Clocks rise and instruction caches fill in the first launches; a slow kernel needs only one.
constexpr int kMinWarmUps = 3;
constexpr int kMaxWarmUps = 10;
constexpr double kSteadyShare = 0.05;
constexpr double kWarmUpNs = 100e6;
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
    const bool too_short = times.error().id() == Diag::kCudaTooShort;
    *result = failed(too_short ? MeasureStatus::kRunError : MeasureStatus::kCrash,
                     times.error().message());
    return false;
  }
  if (times->timer != *timer) result->samples_ns.clear();
  *timer = times->timer;
  result->samples_ns.insert(result->samples_ns.end(), times->ns.begin(), times->ns.end());
  return true;
}

/// Launches until two in turn take about as long; false as take().
bool warm_up(const TimedLaunches& launch, Measurement* result, TimerKind* timer) {
  double before = 0, total = 0;
  bool is_warm = false;
  for (int done = 1; !is_warm && done <= kMaxWarmUps; ++done) {
    result->samples_ns.clear();
    if (!take(launch, 1, result, timer)) return false;
    const double now = median(result->samples_ns);
    total += now;
    const bool steady = std::abs(now - before) < kSteadyShare * now;
    is_warm = total >= kWarmUpNs || (done >= kMinWarmUps && steady);
    before = now;
  }
  result->samples_ns.clear();
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
  if (!warm_up(launch, &result, &timer)) return result;
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
    alive[i] = warm_up(launches[i], &results[i], &timers[i]) ? 1 : 0;
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
