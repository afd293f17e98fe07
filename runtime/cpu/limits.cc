#include "runtime/cpu/limits.h"

#include "runtime/clock.h"
#include "runtime/cpu/cpus.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/limits_loops.h"
#include "runtime/cpu/pool.h"
#include "runtime/measure.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <thread>
#include <utility>

namespace prunerc::runtime {
namespace {

constexpr int kRounds = 10;
/// Loops over memory work on multiples of this; a copy takes two.
constexpr int64_t kStepBytes = 512;
constexpr int64_t kCanaryIterations = 300;

/// A mapping that is given back on destruction; huge pages where the system has them, so that TLB
/// misses do not count.
class Mapping {
 public:
  explicit Mapping(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    void* at = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    madvise(at, bytes_, MADV_HUGEPAGE);
    data_ = static_cast<char*>(at);
    // Written, so that the pages are not all the one zero page.
    for (size_t i = 0; i < bytes_; i += 4096) data_[i] = 1;
  }
  ~Mapping() {
    if (data_ != nullptr) munmap(data_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  char* data() const { return data_; }

 private:
  size_t bytes_;
  char* data_ = nullptr;
};

using Work = std::function<void(int worker, int64_t iterations)>;

/// Runs the work on every thread; the time from when all have arrived until the last is done. An
/// iteration beforehand brings data into the caches, unless a sample is hardly longer.
int64_t run_together(Pool& pool, const Work& work, int64_t iterations) {
  struct Shared {
    const Work* work = nullptr;
    int num_threads = 1;
    int64_t iterations = 0;
    std::atomic<int> arrived{0};
    std::atomic<int64_t> started_ns{0};
  };
  Shared shared;
  shared.work = &work;
  shared.num_threads = pool.num_threads();
  shared.iterations = iterations;
  // One task a thread: the barrier makes sure that no thread takes two.
  pool.parallel_for(
      pool.num_threads(),
      [](int64_t task, int32_t, void* closure) {
        auto& s = *static_cast<Shared*>(closure);
        if (s.iterations > 1) (*s.work)(static_cast<int>(task), 1);
        if (s.arrived.fetch_add(1) + 1 == s.num_threads) s.started_ns.store(now_ns());
        while (s.started_ns.load() == 0) std::this_thread::yield();
        (*s.work)(static_cast<int>(task), s.iterations);
      },
      &shared);
  return std::max<int64_t>(1, now_ns() - shared.started_ns.load());
}

/// Iterations that keep one thread busy for about `sample_ns`, found by its CPU time: the wall time
/// of a run that was interrupted would look long enough.
int64_t calibrate(int64_t sample_ns, const Work& work) {
  for (int64_t iterations = 1;;) {
    const int64_t started = thread_cpu_ns();
    work(0, iterations);
    const int64_t elapsed = std::max<int64_t>(1, thread_cpu_ns() - started);
    if (elapsed >= sample_ns / 2) return iterations;
    const double grow = static_cast<double>(sample_ns) / static_cast<double>(elapsed);
    iterations =
        static_cast<int64_t>(static_cast<double>(iterations) * std::clamp(grow, 2.0, 16.0));
  }
}

/// What is sampled of a machine: functions that take a sample each, and where their rates go.
class Probes {
 public:
  void add(Pool& pool, int64_t sample_ns, double units, Work work, double* best, double* spread) {
    const int64_t iterations = calibrate(sample_ns, work);
    samples_.push_back([&pool, units, iterations, work = std::move(work)] {
      return units * static_cast<double>(iterations) /
             static_cast<double>(run_together(pool, work, iterations));
    });
    places_.emplace_back(best, spread);
  }
  void run() const {
    const std::vector<Rate> rates = sample_in_rounds(samples_, kRounds);
    for (size_t i = 0; i < rates.size(); ++i) {
      *places_[i].first = rates[i].best;
      *places_[i].second = rates[i].spread;
    }
  }

 private:
  std::vector<std::function<double()>> samples_;
  std::vector<std::pair<double*, double*>> places_;
};

void add_fma(Probes& probes, Pool& pool, const LimitLoops& loops, int64_t sample_ns,
             ThreadLimits* limits) {
  probes.add(
      pool, sample_ns, loops.flops * pool.num_threads(), [&](int, int64_t n) { loops.fma(n); },
      &limits->fma_gflops, &limits->fma_spread);
}

/// `memory` has footprint_bytes for each thread.
void add_level(Probes& probes, Pool& pool, const LimitLoops& loops, int64_t sample_ns, char* memory,
               LevelBandwidth* level) {
  const int64_t size = level->footprint_bytes;
  const double bytes = static_cast<double>(size) * pool.num_threads();
  const auto read = [&loops, memory, size](int worker, int64_t n) {
    const char* data = memory + worker * size;
    for (int64_t i = 0; i < n; ++i) loops.read(data, data + size);
  };
  const auto copy = [&loops, memory, size](int worker, int64_t n) {
    char* data = memory + worker * size;
    char* middle = data + size / 2;
    for (int64_t i = 0; i < n; ++i) loops.copy(data, middle, middle);
  };
  probes.add(pool, sample_ns, bytes, read, &level->read_gbps, &level->read_spread);
  probes.add(pool, sample_ns, bytes, copy, &level->copy_gbps, &level->copy_spread);
}

LevelBandwidth make_level(const char* name, int64_t bytes) {
  return {.name = name, .footprint_bytes = bytes / (2 * kStepBytes) * (2 * kStepBytes)};
}

/// The levels that `num_threads` threads measure. Half a private cache, a quarter of the shared one
/// at most: the measured lines must stay in their level.
std::vector<LevelBandwidth> make_levels(int num_threads, int64_t memory_footprint_bytes) {
  const CacheSizes caches = host_caches();
  std::vector<LevelBandwidth> levels = {make_level("L1", caches.l1d_bytes / 2),
                                        make_level("L2", caches.l2_bytes / 2)};
  const int64_t share = std::min(caches.l3_bytes / 4, caches.l3_bytes / 2 / num_threads);
  if (share > caches.l2_bytes) levels.push_back(make_level("L3", share));
  levels.push_back(make_level("memory", memory_footprint_bytes / num_threads));
  return levels;
}

int64_t footprint(const ThreadLimits& limits) {
  int64_t most = 0;
  for (const LevelBandwidth& level : limits.levels) most = std::max(most, level.footprint_bytes);
  return most * limits.num_threads;
}

void raise_to(double least, double least_spread, double* value, double* spread) {
  if (least <= *value) return;
  *value = least;
  *spread = least_spread;
}

void raise_to(const ThreadLimits& least, ThreadLimits* limits) {
  raise_to(least.fma_gflops, least.fma_spread, &limits->fma_gflops, &limits->fma_spread);
  for (size_t i = 0; i < std::min(limits->levels.size(), least.levels.size()); ++i) {
    LevelBandwidth& level = limits->levels[i];
    const LevelBandwidth& other = least.levels[i];
    raise_to(other.read_gbps, other.read_spread, &level.read_gbps, &level.read_spread);
    raise_to(other.copy_gbps, other.copy_spread, &level.copy_gbps, &level.copy_spread);
  }
}

double measure_launch(int wanted_threads) {
  /// Workers stay awake from one launch to the next.
  constexpr int64_t kSpinNs = 50'000'000;
  Pool pool({.num_threads = wanted_threads, .spin_ns = kSpinNs});
  const int num_threads = pool.num_threads();
  if (num_threads == 1) return 0;
  struct Meeting {
    std::atomic<int> arrived{0};
    int num_threads = 0;
  };
  constexpr int kLaunches = 200;
  std::vector<int64_t> samples;
  for (int i = 0; i < kLaunches; ++i) {
    const int64_t started = now_ns();
    // Every task waits for all: without that, the caller would run them all before a worker comes.
    Meeting meeting;
    meeting.num_threads = num_threads;
    pool.parallel_for(
        num_threads,
        [](int64_t, int32_t, void* closure) {
          auto& m = *static_cast<Meeting*>(closure);
          m.arrived.fetch_add(1);
          while (m.arrived.load() < m.num_threads) {
          }
        },
        &meeting);
    samples.push_back(now_ns() - started);
  }
  std::nth_element(samples.begin(), samples.begin() + kLaunches / 2, samples.end());
  return static_cast<double>(samples[kLaunches / 2]);
}

const LevelBandwidth* find_level(const ThreadLimits& limits, const char* name) {
  for (const LevelBandwidth& level : limits.levels) {
    if (level.name == name) return &level;
  }
  return nullptr;
}

/// The platform's field of each limit.
ir::Platform collect(const MachineLimits& limits, double LevelBandwidth::*read,
                     double ThreadLimits::*fma, double clock, double scale) {
  const auto level = [&](const ThreadLimits& threads, const char* name) {
    const LevelBandwidth* found = find_level(threads, name);
    return found == nullptr ? 0 : found->*read * scale;
  };
  ir::Platform platform;
  platform.clock_ghz = clock;
  platform.fma_gflops = limits.one.*fma;
  platform.fma_gflops_all = limits.all.*fma;
  platform.l1_bandwidth = level(limits.one, "L1");
  platform.l2_bandwidth = level(limits.one, "L2");
  platform.l3_bandwidth = level(limits.one, "L3");
  platform.memory_bandwidth = level(limits.one, "memory");
  platform.l2_bandwidth_all = level(limits.all, "L2");
  platform.l3_bandwidth_all = level(limits.all, "L3");
  platform.memory_bandwidth_all = level(limits.all, "memory");
  return platform;
}

void add_clock(Probes& probes, Pool& pool, int64_t sample_ns, MachineLimits* limits) {
  probes.add(
      pool, sample_ns, static_cast<double>(kDependentAdds),
      [](int, int64_t n) { dependent_adds(n); }, &limits->clock_ghz, &limits->clock_spread);
}

}  // namespace

std::vector<Rate> sample_in_rounds(std::span<const std::function<double()>> samples,
                                   int num_rounds) {
  std::vector<std::vector<double>> taken(samples.size());
  for (int round = 0; round < num_rounds; ++round) {
    for (size_t i = 0; i < samples.size(); ++i) taken[i].push_back(samples[i]());
  }
  std::vector<Rate> rates;
  for (const std::vector<double>& values : taken) {
    Rate rate;
    if (!values.empty()) rate.best = *std::max_element(values.begin(), values.end());
    if (rate.best > 0) rate.spread = (rate.best - median(values)) / rate.best;
    rates.push_back(rate);
  }
  return rates;
}

double measure_fma_gflops(int num_threads, int64_t sample_ns, int vector_bytes) {
  Pool pool({.num_threads = num_threads});
  Probes probes;
  ThreadLimits limits;
  add_fma(probes, pool, limit_loops(vector_bytes), sample_ns, &limits);
  probes.run();
  return limits.fma_gflops;
}

double measure_copy_gbps(int num_threads, int64_t footprint_bytes, int64_t sample_ns) {
  Pool pool({.num_threads = num_threads});
  LevelBandwidth level = make_level("", footprint_bytes);
  const Mapping memory(level.footprint_bytes * num_threads);
  if (memory.data() == nullptr) return 0;
  Probes probes;
  add_level(probes, pool, limit_loops(0), sample_ns, memory.data(), &level);
  probes.run();
  return level.copy_gbps;
}

double measure_clock_ghz(int64_t sample_ns) {
  Pool pool({.num_threads = 1});
  Probes probes;
  MachineLimits limits;
  add_clock(probes, pool, sample_ns, &limits);
  probes.run();
  return limits.clock_ghz;
}

double canary_ns() {
  int64_t best = INT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const int64_t started = now_ns();
    dependent_adds(kCanaryIterations);
    best = std::min(best, now_ns() - started);
  }
  return static_cast<double>(best);
}

double clock_of_canary(double canary_ns) {
  constexpr auto kAdds = static_cast<double>(kCanaryIterations * kDependentAdds);
  return canary_ns > 0 ? kAdds / canary_ns : 0;
}

double reference_ns(Pool& pool) {
  constexpr int kTimes = 4;
  // A hundred canaries: over half a millisecond.
  constexpr int64_t kIterations = 100 * kCanaryIterations;
  const Work adds = [](int, int64_t n) { dependent_adds(n); };
  int64_t sum = 0;
  for (int i = 0; i < kTimes; ++i) sum += run_together(pool, adds, kIterations);
  return static_cast<double>(sum) / kTimes;
}

MachineLimits measure_limits(const LimitsOptions& options) {
  const int num_threads = usable_cpus();
  const LimitLoops& loops = limit_loops(options.vector_bytes);
  MachineLimits limits;
  limits.vector_bytes = loops.vector_bytes;
  Pool one({.num_threads = 1});
  Pool all({.num_threads = num_threads});
  limits.all.num_threads = all.num_threads();
  for (ThreadLimits* threads : {&limits.one, &limits.all}) {
    threads->levels = make_levels(threads->num_threads, options.memory_footprint_bytes);
  }
  const Mapping memory(std::max(footprint(limits.one), footprint(limits.all)));
  Probes probes;
  add_clock(probes, one, options.sample_ns, &limits);
  for (const auto& [pool, threads] : {std::pair(&one, &limits.one), std::pair(&all, &limits.all)}) {
    add_fma(probes, *pool, loops, options.sample_ns, threads);
    for (LevelBandwidth& level : threads->levels) {
      if (memory.data() == nullptr) continue;
      add_level(probes, *pool, loops, options.sample_ns, memory.data(), &level);
    }
  }
  probes.run();
  // More threads reach no less than one; a lower number means that other work had their cores.
  raise_to(limits.one, &limits.all);
  limits.launch_ns = measure_launch(num_threads);
  return limits;
}

ir::Platform to_platform(const MachineLimits& limits) {
  ir::Platform platform =
      collect(limits, &LevelBandwidth::read_gbps, &ThreadLimits::fma_gflops, limits.clock_ghz, 1e9);
  platform.launch_ns = limits.launch_ns;
  return platform;
}

ir::Platform to_spreads(const MachineLimits& limits) {
  return collect(limits, &LevelBandwidth::read_spread, &ThreadLimits::fma_spread,
                 limits.clock_spread, 1);
}

}  // namespace prunerc::runtime
