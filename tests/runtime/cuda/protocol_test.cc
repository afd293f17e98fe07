#include "runtime/cuda/protocol.h"

#include <catch2/catch.hpp>

namespace prunerc::runtime::cuda {
namespace {

/// Launches that take 10 us, the first five twice as long; counts what is asked for.
struct Steady {
  double ns = 10'000;
  int64_t asked = 0;
  Result<LaunchTimes> operator()(int64_t count) {
    LaunchTimes times{.timer = TimerKind::kCupti, .ns = {}};
    for (int64_t i = 0; i < count; ++i) times.ns.push_back(asked++ < 5 ? 2 * ns : ns);
    return times;
  }
};

TEST_CASE("launches fill 20 ms, but are at least as many as asked for and at most 200") {
  for (const auto& [ns, expected] :
       std::vector<std::pair<double, size_t>>{{10'000, 200}, {400'000, 25}, {1e7, 7}, {1e9, 3}}) {
    Steady steady{.ns = ns};
    const Measurement m = time_launches(std::ref(steady), TimingOptions{});
    CHECK(m.status == MeasureStatus::kOk);
    CHECK(m.samples_ns.size() == expected);
  }
}

TEST_CASE("launches that warm up do not count, and the median is the time") {
  Steady steady;
  const Measurement m = time_launches(std::ref(steady), TimingOptions{});
  CHECK(m.median_ns == 10'000);
  CHECK(m.samples_ns[0] == 20'000);  // the fourth
  CHECK(m.detail == "timer=cupti");
}

TEST_CASE("launches warm up until two in turn take about as long, ten at most") {
  for (const double factor : {0.97, 0.9}) {
    std::vector<double> taken;
    double ns = 1e6;
    const TimedLaunches settling = [&](int64_t count) -> Result<LaunchTimes> {
      LaunchTimes times{.timer = TimerKind::kCupti, .ns = {}};
      for (int64_t i = 0; i < count; ++i) {
        times.ns.push_back(ns);
        taken.push_back(ns);
        ns *= factor;
      }
      return times;
    };
    const Measurement m = time_launches(settling, TimingOptions{});
    REQUIRE(m.ok());
    CHECK(taken.size() - m.samples_ns.size() == (factor == 0.97 ? 3 : 10));
  }
}

TEST_CASE("one launch of a tenth of a second warms up") {
  Steady steady{.ns = 100e6};
  const Measurement m = time_launches(std::ref(steady), TimingOptions{});
  CHECK(steady.asked - static_cast<int64_t>(m.samples_ns.size()) == 1);
}

TEST_CASE("a time too short for the timer is no crash") {
  const TimedLaunches empty = [](int64_t) -> Result<LaunchTimes> {
    return error(Diag::kCudaTooShort, 1.0, 2.0);
  };
  const Measurement m = time_launches(empty, TimingOptions{});
  CHECK(m.status == MeasureStatus::kRunError);
  CHECK(m.detail == error(Diag::kCudaTooShort, 1.0, 2.0).message());
}

TEST_CASE("a candidate that is clearly slower than the best known is left after three launches") {
  Steady steady;
  TimingOptions options;
  options.best_known_ns = 1000;
  const Measurement m = time_launches(std::ref(steady), options);
  CHECK(m.status == MeasureStatus::kOk);
  CHECK(steady.asked == 6);
}

TEST_CASE("a time that the hardware cannot reach is refused") {
  Steady steady;
  TimingOptions options;
  options.min_possible_ns = 15'000;
  CHECK(time_launches(std::ref(steady), options).status == MeasureStatus::kRunError);
}

TEST_CASE("an error of a launch is a crash") {
  const TimedLaunches broken = [](int64_t) -> Result<LaunchTimes> {
    return error(Diag::kCudaCall, "cuLaunchKernel", "CUDA_ERROR_X");
  };
  const Measurement m = time_launches(broken, TimingOptions{});
  CHECK(m.status == MeasureStatus::kCrash);
  CHECK(m.detail == "cuLaunchKernel failed: CUDA_ERROR_X");
}

TEST_CASE("when the timer changes on the way, earlier times are dropped") {
  int64_t calls = 0;
  const TimedLaunches changing = [&](int64_t count) -> Result<LaunchTimes> {
    const bool late = ++calls > 4;  // three warm up
    return LaunchTimes{
        .timer = late ? TimerKind::kEvents : TimerKind::kCupti,
        .ns = std::vector<double>(static_cast<size_t>(count), late ? 12'000 : 10'000)};
  };
  const Measurement m = time_launches(changing, TimingOptions{});
  CHECK(m.detail == "timer=events");
  CHECK(m.min_ns == 12'000);
}

TEST_CASE("kernels in turn get equal numbers of launches, and a broken one ends alone") {
  Steady fast, slow{.ns = 30'000};
  const TimedLaunches broken = [](int64_t) -> Result<LaunchTimes> {
    return error(Diag::kCudaCall, "cuLaunchKernel", "CUDA_ERROR_X");
  };
  const std::vector<TimedLaunches> all = {std::ref(fast), broken, std::ref(slow)};
  const std::vector<Measurement> times = time_interleaved(all, TimingOptions{});
  CHECK(times[0].median_ns == 10'000);
  CHECK(times[1].status == MeasureStatus::kCrash);
  CHECK(times[2].median_ns == 30'000);
  CHECK(times[0].samples_ns.size() == 50);
  CHECK(times[2].samples_ns.size() == 50);
}

}  // namespace
}  // namespace prunerc::runtime::cuda
