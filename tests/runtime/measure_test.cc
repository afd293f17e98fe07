#include "runtime/measure.h"

#include "ir/support/rng.h"

#include <catch2/catch.hpp>

namespace prunerc::runtime {
namespace {

/// A kernel that takes `ns` a run, with a bit of noise.
TimedRun steady(double ns, Rng& rng) {
  return [ns, &rng](int64_t runs) {
    const double noise = 1 + 0.01 * (rng.uniform() - 0.5);
    return RawSample{.wall_ns = static_cast<int64_t>(ns * noise * static_cast<double>(runs)),
                     .lost_ns = 0};
  };
}

TEST_CASE("a steady kernel is timed to within its noise, in few samples") {
  Rng rng(1);
  for (const double ns : {50.0, 3e3, 1e6, 4e7}) {
    const Measurement result = time_kernel(steady(ns, rng), {});
    CHECK(result.status == MeasureStatus::kOk);
    CHECK(result.median_ns == Approx(ns).epsilon(0.01));
    CHECK(result.spread < 0.01);
    CHECK(result.samples_ns.size() >= 3);
    CHECK(result.samples_ns.size() <= 10);
  }
}

TEST_CASE("short kernels are repeated until a sample is long enough to time") {
  Rng rng(2);
  TimingOptions options;
  CHECK(time_kernel(steady(100, rng), options).runs_per_sample >= 9000);
  CHECK(time_kernel(steady(5e6, rng), options).runs_per_sample == 1);
  options.cache = CacheState::kFlushed;
  CHECK(time_kernel(steady(100, rng), options).runs_per_sample == 1);
}

TEST_CASE("a cold start does not count") {
  int64_t calls = 0;
  const TimedRun cold_start = [&](int64_t runs) {
    const int64_t each = calls++ < 3 ? 900'000 : 100'000;
    return RawSample{.wall_ns = each * runs, .lost_ns = 0};
  };
  CHECK(time_kernel(cold_start, {}).median_ns == Approx(100'000));
}

TEST_CASE("samples that lost a CPU are left out") {
  Rng rng(3);
  const TimedRun contended = [&](int64_t runs) {
    const int64_t wall = 1'000'000 * runs;
    if (rng.chance(0.6)) return RawSample{.wall_ns = 2 * wall, .lost_ns = wall};
    return RawSample{.wall_ns = wall, .lost_ns = 100};
  };
  const Measurement result = time_kernel(contended, {});
  CHECK(result.status == MeasureStatus::kOk);
  CHECK(result.median_ns == Approx(1'000'000));
  CHECK(result.num_disturbed > 0);
  CHECK(result.spread == 0);
}

TEST_CASE("a machine that is never free gives the kernel's own time and says so") {
  const TimedRun busy = [](int64_t runs) {
    return RawSample{.wall_ns = 2'000'000 * runs,
                     .lost_ns = 1'500'000 * runs,
                     .caller_lost_ns = 1'000'000 * runs};
  };
  const Measurement result = time_kernel(busy, {});
  CHECK(result.ok());
  CHECK(result.disturbed);
  CHECK(result.median_ns == Approx(1'000'000));
}

TEST_CASE("what the caller lost is taken off only where nobody took its tasks over") {
  const RawSample alone = sample_of(2000, 500, {});
  CHECK(alone.lost_ns == 1500);
  CHECK(alone.caller_lost_ns == 1500);
  const std::vector<int64_t> workers = {1900, 2000};
  const RawSample helped = sample_of(2000, 500, workers);
  CHECK(helped.wall_ns == 2000);
  CHECK(helped.lost_ns == 1500);
  CHECK(helped.caller_lost_ns == 0);
  CHECK(sample_of(2000, 2100, workers).lost_ns == 100);
  // So a time from a machine that is never free is no shorter than the kernel's own.
  const TimedRun busy = [&](int64_t runs) {
    return sample_of(2'000'000 * runs, 500'000 * runs, workers);
  };
  const Measurement result = time_kernel(busy, {});
  CHECK(result.disturbed);
  CHECK(result.median_ns == Approx(2'000'000));
}

TEST_CASE("a candidate far slower than the best is given up after two samples") {
  Rng rng(4);
  TimingOptions options;
  options.best_known_ns = 1e6;
  CHECK(time_kernel(steady(2.5e6, rng), options).samples_ns.size() == 2);
  CHECK(time_kernel(steady(1.5e6, rng), options).samples_ns.size() >= 7);
}

TEST_CASE("sampling stops near its time limit") {
  TimingOptions options;
  options.max_time_ns = 100'000'000;
  options.target_error = 0;
  options.max_samples = 1'000'000;
  Rng rng(5);
  int64_t spent = 0;
  const TimedRun inner = steady(3e6, rng);
  time_kernel(
      [&](int64_t runs) {
        const RawSample sample = inner(runs);
        spent += sample.wall_ns;
        return sample;
      },
      options);
  CHECK(spent >= 90'000'000);
  CHECK(spent <= 110'000'000);
}

TEST_CASE("a kernel slower than the whole limit is run once") {
  int calls = 0;
  const Measurement result = time_kernel(
      [&](int64_t) {
        ++calls;
        return RawSample{.wall_ns = 5'000'000'000, .lost_ns = 0};
      },
      {});
  CHECK(calls == 1);
  CHECK(result.median_ns == Approx(5e9));
}

TEST_CASE("times that cannot be true are rejected") {
  Rng rng(6);
  TimingOptions options;
  options.min_possible_ns = 1e6;
  CHECK(time_kernel(steady(5e5, rng), options).status == MeasureStatus::kRunError);
  CHECK(time_kernel([](int64_t) { return RawSample{}; }, {}).status == MeasureStatus::kRunError);
}

TEST_CASE("kernels timed in turn meet a drifting machine alike") {
  // The clock falls to half over the session: only interleaving keeps the order and the ratio.
  double elapsed = 0;
  const auto drifting = [&](double ns) {
    return [&elapsed, ns](int64_t runs) {
      const double slow = 1 + std::min(1.0, elapsed / 5e8);
      const double wall = ns * slow * static_cast<double>(runs);
      elapsed += wall;
      return RawSample{.wall_ns = static_cast<int64_t>(wall), .lost_ns = 0};
    };
  };
  const std::vector<TimedRun> runs = {drifting(1.02e6), drifting(1e6), drifting(1.1e6)};
  const std::vector<Measurement> results = time_interleaved(runs, {});
  REQUIRE(results.size() == 3);
  CHECK(results[0].samples_ns.size() == results[1].samples_ns.size());
  CHECK(results[0].median_ns / results[1].median_ns == Approx(1.02).epsilon(0.005));
  CHECK(results[2].median_ns / results[1].median_ns == Approx(1.1).epsilon(0.005));
}

TEST_CASE("the median of an even count is the mean of the middle two") {
  CHECK(median({}) == 0);
  CHECK(median({3}) == 3);
  CHECK(median({4, 1, 3, 2}) == 2.5);
  CHECK(median({5, 1, 9}) == 5);
}

}  // namespace
}  // namespace prunerc::runtime
