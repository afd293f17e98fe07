// The measured limits of this machine: multiply-adds and bandwidth of each memory level.
#ifndef PRUNERC_RUNTIME_CPU_LIMITS_H_
#define PRUNERC_RUNTIME_CPU_LIMITS_H_

#include "ir/target.h"

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace prunerc::runtime {

class Pool;

/// The best of several samples: other work on the machine lowers a rate, nothing raises it.
struct Rate {
  double best = 0;
  double spread = 0;  ///< how far the median stays behind the best: (best - median) / best

  bool operator==(const Rate&) const = default;
};

/// Takes a sample of each in turn, `num_rounds` times, so that a burst of other work meets all of
/// them once and not one of them every time.
std::vector<Rate> sample_in_rounds(std::span<const std::function<double()>> samples,
                                   int num_rounds);

/// One memory level under streaming loops. Units: GB/s (1e9 bytes a second); a copy counts both its
/// sides.
struct LevelBandwidth {
  std::string name;             ///< "L1", "L2", "L3", "memory"
  int64_t footprint_bytes = 0;  ///< working set of each thread while measured
  double read_gbps = 0;
  double copy_gbps = 0;
  double read_spread = 0;  ///< as Rate::spread
  double copy_spread = 0;

  bool operator==(const LevelBandwidth&) const = default;
};

/// Limits reached by `num_threads` threads together.
struct ThreadLimits {
  int num_threads = 1;
  double fma_gflops = 0;  ///< f32 multiply-adds, two flops each, with the widest registers
  double fma_spread = 0;
  std::vector<LevelBandwidth> levels;

  bool operator==(const ThreadLimits&) const = default;
};

struct MachineLimits {
  int vector_bytes = 0;  ///< register width that was measured: 64, 32 or 16
  double clock_ghz = 0;  ///< from a chain of dependent additions
  double clock_spread = 0;
  double launch_ns = 0;  ///< fork-join of the pool with all threads, workers awake
  ThreadLimits one;      ///< one thread
  ThreadLimits all;      ///< a thread for each CPU that the process may use

  bool operator==(const MachineLimits&) const = default;
};

struct LimitsOptions {
  /// Length of one sample; each limit is the best of ten: short samples fit between other work.
  /// Units: ns.
  int64_t sample_ns = 2'000'000;
  /// Bytes per thread for the memory level; must exceed the last cache.
  int64_t memory_footprint_bytes = 256 << 20;
  /// Registers to measure with, as an instruction set has them: 64 AVX-512, 32 AVX2, 16 SSE4, whose
  /// multiply-add is a product and a sum. 0, or wider than the CPU's: the widest.
  int vector_bytes = 0;
};

/// Measures the limits, in rounds over all of them. Cost: about two seconds, most of it memory
/// bandwidth.
MachineLimits measure_limits(const LimitsOptions& options = {});

/// f32 multiply-add rate of `num_threads` threads together, with registers of `vector_bytes` (see
/// LimitsOptions). Units: GFLOP/s, of samples of `sample_ns` nanoseconds.
double measure_fma_gflops(int num_threads, int64_t sample_ns, int vector_bytes = 0);

/// Copy bandwidth of `num_threads` threads that each go over `footprint_bytes`, source and target
/// together. Units: GB/s, both sides counted.
double measure_copy_gbps(int num_threads, int64_t footprint_bytes, int64_t sample_ns);

/// The clock from a chain of dependent additions. Units: GHz.
double measure_clock_ghz(int64_t sample_ns);

/// Nanoseconds that a fixed chain of dependent additions takes now: rises when the clock falls or
/// the core is shared. Cost: about 20 microseconds.
double canary_ns();

/// Wall nanoseconds that a fixed chain of dependent additions takes now on every thread of the pool
/// at once, the mean of several. Longer than a slice of a busy scheduler, so that it shows if others
/// have a part of the CPUs. Cost: about 3 ms.
double reference_ns(Pool& pool);
/// The clock that a time of canary_ns means. Units: GHz.
double clock_of_canary(double canary_ns);

/// Copies measured limits into the form that search and cost models read.
ir::Platform to_platform(const MachineLimits& limits);
/// Their spreads, each in its limit's field.
ir::Platform to_spreads(const MachineLimits& limits);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_LIMITS_H_
