#include "runtime/cpu/limits.h"

#include "runtime/clock.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/pool.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <thread>

namespace prunerc::runtime {
namespace {

/// Independent accumulators: enough to cover 4 cycles of latency on 2 ports, few enough to leave
/// two registers.
constexpr int64_t kAccumulators = 12;
constexpr int kSamples = 10;
constexpr int kMinSamples = 3;
/// Workers stay awake from one sample to the next.
constexpr int64_t kSpinNs = 50'000'000;
constexpr int64_t kDependentAdds = 64;

// The kernels are inline assembly, so that they mean the same with every compiler and flag; the
// wide ones are called only after __builtin_cpu_supports.
#define PRUNERC_FMA_ROW(REG)                     \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "0\n\t"                                        \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "1\n\t"                                        \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "2\n\t"                                        \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "3\n\t"                                        \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "4\n\t"                                        \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "5\n\t"                                        \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "6\n\t"                                        \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "7\n\t"                                        \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "8\n\t"                                        \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "9\n\t"                                        \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG \
  "10\n\t"                                       \
  "vfmadd231ps %%" REG "14, %%" REG "15, %%" REG "11\n\t"
#define PRUNERC_VECTOR_CLOBBERS                                                            \
  "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", \
      "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"

// All registers start at zero: denormals or infinities would slow some CPUs down.
void fma_loop_zmm(int64_t iterations) {
  asm volatile(
      "vzeroall\n\t"
      "1:\n\t" PRUNERC_FMA_ROW("zmm") PRUNERC_FMA_ROW("zmm") "dec %0\n\t jnz 1b\n\t vzeroupper"
      : "+r"(iterations)::"cc", PRUNERC_VECTOR_CLOBBERS);
}

void fma_loop_ymm(int64_t iterations) {
  asm volatile(
      "vzeroall\n\t"
      "1:\n\t" PRUNERC_FMA_ROW("ymm") PRUNERC_FMA_ROW("ymm") "dec %0\n\t jnz 1b\n\t vzeroupper"
      : "+r"(iterations)::"cc", PRUNERC_VECTOR_CLOBBERS);
}

// Without fused operations: six products and six sums for six multiply-adds.
#define PRUNERC_SSE_ROW                                  \
  "mulps %%xmm15, %%xmm0\n\t addps %%xmm15, %%xmm6\n\t"  \
  "mulps %%xmm15, %%xmm1\n\t addps %%xmm15, %%xmm7\n\t"  \
  "mulps %%xmm15, %%xmm2\n\t addps %%xmm15, %%xmm8\n\t"  \
  "mulps %%xmm15, %%xmm3\n\t addps %%xmm15, %%xmm9\n\t"  \
  "mulps %%xmm15, %%xmm4\n\t addps %%xmm15, %%xmm10\n\t" \
  "mulps %%xmm15, %%xmm5\n\t addps %%xmm15, %%xmm11\n\t"

void fma_loop_xmm(int64_t iterations) {
  asm volatile(
      "vzeroall\n\t"
      "1:\n\t" PRUNERC_SSE_ROW PRUNERC_SSE_ROW "dec %0\n\t jnz 1b"
      : "+r"(iterations)::"cc", PRUNERC_VECTOR_CLOBBERS);
}

#define PRUNERC_LOAD8(REG, SIZE)                                          \
  "vmovaps (%0), %%" REG "0\n\t vmovaps 1*" SIZE "(%0), %%" REG           \
  "1\n\t"                                                                 \
  "vmovaps 2*" SIZE "(%0), %%" REG "2\n\t vmovaps 3*" SIZE "(%0), %%" REG \
  "3\n\t"                                                                 \
  "vmovaps 4*" SIZE "(%0), %%" REG "4\n\t vmovaps 5*" SIZE "(%0), %%" REG \
  "5\n\t"                                                                 \
  "vmovaps 6*" SIZE "(%0), %%" REG "6\n\t vmovaps 7*" SIZE "(%0), %%" REG "7\n\t"
#define PRUNERC_STORE8(REG, SIZE)                                      \
  "vmovaps %%" REG "0, (%2)\n\t vmovaps %%" REG "1, 1*" SIZE           \
  "(%2)\n\t"                                                           \
  "vmovaps %%" REG "2, 2*" SIZE "(%2)\n\t vmovaps %%" REG "3, 3*" SIZE \
  "(%2)\n\t"                                                           \
  "vmovaps %%" REG "4, 4*" SIZE "(%2)\n\t vmovaps %%" REG "5, 5*" SIZE \
  "(%2)\n\t"                                                           \
  "vmovaps %%" REG "6, 6*" SIZE "(%2)\n\t vmovaps %%" REG "7, 7*" SIZE "(%2)\n\t"

// `bytes` is a multiple of 512 and not zero.
void read_zmm(const char* from, const char* end) {
  asm volatile(
      "1:\n\t" PRUNERC_LOAD8("zmm", "64") "add $512, %0\n\t cmp %1, %0\n\t jb 1b\n\t vzeroupper"
      : "+r"(from)
      : "r"(end)
      : "cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

void read_ymm(const char* from, const char* end) {
  asm volatile(
      "1:\n\t" PRUNERC_LOAD8("ymm", "32") "add $256, %0\n\t cmp %1, %0\n\t jb 1b\n\t vzeroupper"
      : "+r"(from)
      : "r"(end)
      : "cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

void copy_zmm(const char* from, const char* end, char* to) {
  asm volatile(
      "1:\n\t" PRUNERC_LOAD8("zmm", "64") PRUNERC_STORE8(
          "zmm", "64") "add $512, %0\n\t add $512, %2\n\t cmp %1, %0\n\t jb 1b\n\t vzeroupper"
      : "+r"(from), "+r"(end), "+r"(to)::"cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

void copy_ymm(const char* from, const char* end, char* to) {
  asm volatile(
      "1:\n\t" PRUNERC_LOAD8("ymm", "32") PRUNERC_STORE8(
          "ymm", "32") "add $256, %0\n\t add $256, %2\n\t cmp %1, %0\n\t jb 1b\n\t vzeroupper"
      : "+r"(from), "+r"(end), "+r"(to)::"cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

void read_xmm(const char* from, const char* end) {
  asm volatile("1:\n\t" PRUNERC_LOAD8("xmm", "16") "add $128, %0\n\t cmp %1, %0\n\t jb 1b"
               : "+r"(from)
               : "r"(end)
               : "cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

void copy_xmm(const char* from, const char* end, char* to) {
  asm volatile("1:\n\t" PRUNERC_LOAD8("xmm", "16") PRUNERC_STORE8(
                   "xmm", "16") "add $128, %0\n\t add $128, %2\n\t cmp %1, %0\n\t jb 1b"
               : "+r"(from), "+r"(end), "+r"(to)::"cc", "memory", PRUNERC_VECTOR_CLOBBERS);
}

/// What is measured with: one width of registers.
struct Loops {
  int vector_bytes;
  void (*fma)(int64_t iterations);
  double flops;  // of an iteration of `fma`
  void (*read)(const char* from, const char* end);
  void (*copy)(const char* from, const char* end, char* to);
};
constexpr Loops kZmm = {64, fma_loop_zmm, 2 * kAccumulators * 16 * 2, read_zmm, copy_zmm};
constexpr Loops kYmm = {32, fma_loop_ymm, 2 * kAccumulators * 8 * 2, read_ymm, copy_ymm};
constexpr Loops kXmm = {16, fma_loop_xmm, 2 * kAccumulators * 4, read_xmm, copy_xmm};

void dependent_adds(int64_t iterations) {
  int64_t sum = 0;
  asm volatile(
      "1:\n\t .rept 64\n\t add %2, %1\n\t .endr\n\t"
      "dec %0\n\t jnz 1b"
      : "+r"(iterations), "+r"(sum)
      : "r"(int64_t{3})
      : "cc");
}

const Loops& loops_of(int vector_bytes) {
  if (vector_bytes == 16) return kXmm;
  return vector_bytes != 32 && __builtin_cpu_supports("avx512f") ? kZmm : kYmm;
}

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

/// Runs the work once on every thread; the time from when all have arrived until the last is done.
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

/// Iterations per second and thread, best of a few samples.
double best_rate(Pool& pool, int64_t sample_ns, const Work& work) {
  const int64_t iterations = calibrate(sample_ns, work);
  int64_t elapsed = INT64_MAX;
  int64_t spent = 0;
  // A single pass over much memory may take far longer than a sample should: then fewer of them.
  for (int i = 0; i < kSamples && (i < kMinSamples || spent < 2 * kSamples * sample_ns); ++i) {
    const int64_t one = run_together(pool, work, iterations);
    elapsed = std::min(elapsed, one);
    spent += one;
  }
  return static_cast<double>(iterations) * 1e9 / static_cast<double>(elapsed);
}

double measure_fma(Pool& pool, const Loops& loops, int64_t sample_ns) {
  const double rate = best_rate(pool, sample_ns, [&](int, int64_t n) { loops.fma(n); });
  return rate * loops.flops * pool.num_threads() / 1e9;
}

LevelBandwidth measure_level(Pool& pool, const Loops& loops, int64_t sample_ns, const char* name,
                             int64_t bytes) {
  constexpr int64_t kStep = 512;
  LevelBandwidth level{.name = name, .footprint_bytes = bytes / (2 * kStep) * (2 * kStep)};
  std::vector<std::unique_ptr<Mapping>> buffers(static_cast<size_t>(pool.num_threads()));
  for (auto& buffer : buffers) {
    buffer = std::make_unique<Mapping>(level.footprint_bytes);
    if (buffer->data() == nullptr) return level;
  }
  const int64_t size = level.footprint_bytes;
  const double gigabytes = static_cast<double>(size) * pool.num_threads() / 1e9;
  level.read_gbps = gigabytes * best_rate(pool, sample_ns, [&](int worker, int64_t n) {
                      const char* data = buffers[static_cast<size_t>(worker)]->data();
                      for (int64_t i = 0; i < n; ++i) loops.read(data, data + size);
                    });
  level.copy_gbps = gigabytes * best_rate(pool, sample_ns, [&](int worker, int64_t n) {
                      char* data = buffers[static_cast<size_t>(worker)]->data();
                      char* middle = data + size / 2;
                      for (int64_t i = 0; i < n; ++i) loops.copy(data, middle, middle);
                    });
  return level;
}

ThreadLimits measure_threads(int num_threads, const LimitsOptions& options) {
  Pool pool({.num_threads = num_threads, .spin_ns = kSpinNs});
  ThreadLimits limits;
  limits.num_threads = num_threads;
  const Loops& loops = loops_of(options.vector_bytes);
  const auto level = [&](const char* name, int64_t bytes) {
    limits.levels.push_back(measure_level(pool, loops, options.sample_ns, name, bytes));
  };
  limits.fma_gflops = measure_fma(pool, loops, options.sample_ns);
  const CacheSizes caches = host_caches();
  // Half a private cache, a quarter of the shared one at most: the measured lines must stay in
  // their level.
  level("L1", caches.l1d_bytes / 2);
  level("L2", caches.l2_bytes / 2);
  const int64_t share = std::min(caches.l3_bytes / 4, caches.l3_bytes / 2 / num_threads);
  if (share > caches.l2_bytes) level("L3", share);
  level("memory", options.memory_footprint_bytes / num_threads);
  return limits;
}

void raise_to(const ThreadLimits& least, ThreadLimits* limits) {
  limits->fma_gflops = std::max(limits->fma_gflops, least.fma_gflops);
  for (size_t i = 0; i < std::min(limits->levels.size(), least.levels.size()); ++i) {
    LevelBandwidth& level = limits->levels[i];
    level.read_gbps = std::max(level.read_gbps, least.levels[i].read_gbps);
    level.copy_gbps = std::max(level.copy_gbps, least.levels[i].copy_gbps);
  }
}

double measure_launch(int num_threads) {
  if (num_threads == 1) return 0;
  Pool pool({.num_threads = num_threads, .spin_ns = kSpinNs});
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

double read_bytes_per_second(const ThreadLimits& limits, const char* name) {
  const LevelBandwidth* level = find_level(limits, name);
  return level == nullptr ? 0 : level->read_gbps * 1e9;
}

}  // namespace

double measure_fma_gflops(int num_threads, int64_t sample_ns, int vector_bytes) {
  Pool pool({.num_threads = num_threads, .spin_ns = kSpinNs});
  return measure_fma(pool, loops_of(vector_bytes), sample_ns);
}

double measure_copy_gbps(int num_threads, int64_t footprint_bytes, int64_t sample_ns) {
  Pool pool({.num_threads = num_threads, .spin_ns = kSpinNs});
  return measure_level(pool, loops_of(0), sample_ns, "", footprint_bytes).copy_gbps;
}

double canary_ns() {
  constexpr int64_t kIterations = 300;
  int64_t best = INT64_MAX;
  for (int i = 0; i < 3; ++i) {
    const int64_t started = now_ns();
    dependent_adds(kIterations);
    best = std::min(best, now_ns() - started);
  }
  return static_cast<double>(best);
}

MachineLimits measure_limits(const LimitsOptions& options) {
  const int num_threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  MachineLimits limits;
  limits.vector_bytes = loops_of(options.vector_bytes).vector_bytes;
  {
    Pool pool({.num_threads = 1});
    const double rate =
        best_rate(pool, options.sample_ns, [](int, int64_t n) { dependent_adds(n); });
    limits.clock_ghz = rate * static_cast<double>(kDependentAdds) / 1e9;
  }
  limits.one = measure_threads(1, options);
  limits.all = num_threads == 1 ? limits.one : measure_threads(num_threads, options);
  // More threads reach no less than one; a lower number means that other work had their cores.
  raise_to(limits.one, &limits.all);
  limits.launch_ns = measure_launch(num_threads);
  return limits;
}

ir::Platform to_platform(const MachineLimits& limits) {
  ir::Platform platform;
  platform.clock_ghz = limits.clock_ghz;
  platform.fma_gflops = limits.one.fma_gflops;
  platform.fma_gflops_all = limits.all.fma_gflops;
  platform.l1_bandwidth = read_bytes_per_second(limits.one, "L1");
  platform.l2_bandwidth = read_bytes_per_second(limits.one, "L2");
  platform.l3_bandwidth = read_bytes_per_second(limits.one, "L3");
  platform.memory_bandwidth = read_bytes_per_second(limits.one, "memory");
  platform.l2_bandwidth_all = read_bytes_per_second(limits.all, "L2");
  platform.l3_bandwidth_all = read_bytes_per_second(limits.all, "L3");
  platform.memory_bandwidth_all = read_bytes_per_second(limits.all, "memory");
  platform.launch_ns = limits.launch_ns;
  return platform;
}

}  // namespace prunerc::runtime
