#include "runtime/measure.h"

#include <algorithm>
#include <cmath>

namespace prunerc::runtime {
namespace {

/// Two samples in a row that differ by less are a steady state.
constexpr double kSteady = 0.03;
/// Warm-up may take this part of the whole time.
constexpr double kWarmUpShare = 0.25;
/// A sample that lost a CPU for longer than this part of it is disturbed; the floor is the cost of
/// a timer interrupt.
constexpr double kMaxLostShare = 0.02;
constexpr int64_t kMaxLostFloorNs = 5'000;
/// Standard error of the median of a normal sample, from its median absolute deviation: 1.4826 *
/// sqrt(pi / 2).
constexpr double kErrorOfMedian = 1.858;
/// Fewer undisturbed samples than this do not make a time worth trusting.
constexpr size_t kMinCleanSamples = 3;
/// Undisturbed or not, this many samples are enough to see that a candidate is far slower.
constexpr size_t kSamplesForEarlyStop = 2;

bool is_disturbed(const RawSample& sample) {
  const auto share = static_cast<int64_t>(kMaxLostShare * static_cast<double>(sample.wall_ns));
  return sample.lost_ns > std::max(share, kMaxLostFloorNs);
}

double deviation(const std::vector<double>& values, double middle) {
  std::vector<double> distance;
  distance.reserve(values.size());
  for (const double value : values) distance.push_back(std::abs(value - middle));
  return median(std::move(distance));
}

/// The state of one kernel while it is sampled.
struct Series {
  const TimedRun* run = nullptr;
  int64_t runs_per_sample = 1;
  int64_t spent_ns = 0;
  std::vector<double> clean_ns;
  std::vector<double> disturbed_ns;

  RawSample take() {
    const RawSample sample = (*run)(runs_per_sample);
    spent_ns += std::max<int64_t>(sample.wall_ns, 1);
    return sample;
  }
  void keep(const RawSample& sample) {
    if (is_disturbed(sample)) {
      // The closest upper bound of what the sample would have taken alone; used only if there are
      // no clean ones.
      const int64_t own_ns = std::max<int64_t>(1, sample.wall_ns - sample.caller_lost_ns);
      disturbed_ns.push_back(static_cast<double>(own_ns) / static_cast<double>(runs_per_sample));
    } else {
      clean_ns.push_back(per_run(sample));
    }
  }
  double per_run(const RawSample& sample) const {
    return static_cast<double>(sample.wall_ns) / static_cast<double>(runs_per_sample);
  }
};

/// Chooses the repetitions and leaves caches, clocks and branch predictors warm.
void warm_up(Series& series, const TimingOptions& options) {
  const auto limit_ns =
      static_cast<int64_t>(kWarmUpShare * static_cast<double>(options.max_time_ns));
  const RawSample first = series.take();
  double last_ns = series.per_run(first);
  // So slow that the first run is all there is time for: it counts.
  if (series.spent_ns >= options.max_time_ns) return series.keep(first);
  while (series.spent_ns < limit_ns) {
    if (options.cache == CacheState::kWarm) {
      const double wanted = static_cast<double>(options.min_sample_ns) / std::max(last_ns, 1.0);
      // At most eightfold a step: a first run that was slow or fast by chance must not decide
      // alone.
      const auto limit = static_cast<double>(series.runs_per_sample * 8);
      series.runs_per_sample = static_cast<int64_t>(std::ceil(std::clamp(wanted, 1.0, limit)));
    }
    const RawSample sample = series.take();
    const double now_ns = series.per_run(sample);
    const bool long_enough = options.cache == CacheState::kFlushed || series.runs_per_sample == 1 ||
                             sample.wall_ns * 2 > options.min_sample_ns;
    if (long_enough && std::abs(now_ns - last_ns) < kSteady * last_ns) return;
    last_ns = now_ns;
  }
}

bool is_precise(const Series& series, const TimingOptions& options) {
  const std::vector<double>& values = series.clean_ns;
  if (values.size() < static_cast<size_t>(std::max(options.min_samples, 1))) return false;
  const double middle = median(values);
  const double error =
      kErrorOfMedian * deviation(values, middle) / std::sqrt(static_cast<double>(values.size()));
  return error <= options.target_error * middle;
}

bool is_hopeless(const Series& series, const TimingOptions& options) {
  if (options.best_known_ns <= 0) return false;
  double fastest = HUGE_VAL;
  for (const double value : series.clean_ns) fastest = std::min(fastest, value);
  for (const double value : series.disturbed_ns) fastest = std::min(fastest, value);
  return series.clean_ns.size() + series.disturbed_ns.size() >= kSamplesForEarlyStop &&
         fastest > options.early_stop_factor * options.best_known_ns;
}

bool is_done(const Series& series, const TimingOptions& options) {
  const size_t taken = series.clean_ns.size() + series.disturbed_ns.size();
  if (taken == 0) return false;
  if (series.spent_ns >= options.max_time_ns) return true;
  // Retaking is bounded as well: a machine that is always busy would use the whole time for every
  // candidate.
  if (series.clean_ns.size() >= static_cast<size_t>(options.max_samples)) return true;
  if (taken >= 2 * static_cast<size_t>(options.max_samples)) return true;
  return is_precise(series, options) || is_hopeless(series, options);
}

void sample_once(Series& series) { series.keep(series.take()); }

Measurement finish(const Series& series, const TimingOptions& options) {
  Measurement result = succeeded();
  result.samples_ns = series.clean_ns;
  result.runs_per_sample = series.runs_per_sample;
  result.num_disturbed = static_cast<int64_t>(series.disturbed_ns.size());
  const size_t needed =
      std::min(kMinCleanSamples, static_cast<size_t>(std::max(options.min_samples, 1)));
  if (series.clean_ns.size() < needed && !series.disturbed_ns.empty()) {
    result.disturbed = true;
    result.samples_ns.insert(result.samples_ns.end(), series.disturbed_ns.begin(),
                             series.disturbed_ns.end());
  }
  summarize(&result);
  if (result.min_ns <= 0 || result.min_ns < options.min_possible_ns) {
    result.status = MeasureStatus::kRunError;
    result.disturbed = false;
    result.detail = "a run took " + std::to_string(result.min_ns) + " ns, less than the possible " +
                    std::to_string(options.min_possible_ns) + " ns";
  }
  return result;
}

}  // namespace

RawSample sample_of(int64_t wall_ns, int64_t caller_cpu_ns,
                    std::span<const int64_t> worker_cpu_ns) {
  int64_t least_cpu_ns = caller_cpu_ns;
  for (const int64_t cpu_ns : worker_cpu_ns) least_cpu_ns = std::min(least_cpu_ns, cpu_ns);
  const int64_t lost_ns = std::max<int64_t>(0, wall_ns - least_cpu_ns);
  return {wall_ns, lost_ns, worker_cpu_ns.empty() ? lost_ns : 0};
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const size_t half = values.size() / 2;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

void summarize(Measurement* measurement) {
  const std::vector<double>& samples = measurement->samples_ns;
  measurement->median_ns = median(samples);
  measurement->min_ns = samples.empty() ? 0 : *std::min_element(samples.begin(), samples.end());
  measurement->spread = measurement->median_ns > 0
                            ? deviation(samples, measurement->median_ns) / measurement->median_ns
                            : 0;
}

Measurement time_kernel(const TimedRun& run, const TimingOptions& options) {
  Series series;
  series.run = &run;
  warm_up(series, options);
  while (!is_done(series, options)) sample_once(series);
  return finish(series, options);
}

std::vector<Measurement> time_interleaved(std::span<const TimedRun> runs,
                                          const TimingOptions& options) {
  std::vector<Series> all(runs.size());
  for (size_t i = 0; i < runs.size(); ++i) {
    all[i].run = &runs[i];
    warm_up(all[i], options);
  }
  // Nobody stops before the others: each must see the same moments of the machine.
  const auto wants_more = [&](const Series& series) { return !is_done(series, options); };
  for (size_t round = 0; std::any_of(all.begin(), all.end(), wants_more); ++round) {
    for (size_t i = 0; i < all.size(); ++i) sample_once(all[(round + i) % all.size()]);
    if (std::any_of(all.begin(), all.end(),
                    [&](const Series& s) { return s.spent_ns >= 2 * options.max_time_ns; }))
      break;
  }
  std::vector<Measurement> results;
  results.reserve(all.size());
  for (const Series& series : all) results.push_back(finish(series, options));
  return results;
}

}  // namespace prunerc::runtime
