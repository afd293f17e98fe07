// The machine at hand as a target: description, measured limits (cached), threads.
#ifndef PRUNERC_TOOLS_DRIVER_PLATFORM_H_
#define PRUNERC_TOOLS_DRIVER_PLATFORM_H_

#include "ir/support/result.h"
#include "ir/target.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace prunerc {

/// "$XDG_CACHE_HOME/prunerc" or "~/.cache/prunerc"; the folder is made. Empty if there is no place
/// to write.
std::string cache_folder();

/// Limits of a machine, and in the same fields how far the median sample stayed behind each
/// (runtime::Rate::spread); 0 where nobody knows.
struct HostLimits {
  ir::Platform best;
  ir::Platform spread;
  bool operator==(const HostLimits&) const = default;
};

/// What the cache folder keeps: a target's text in the first line, the spreads as another's in the
/// second.
std::string to_string(const HostLimits& limits);
/// Reads it back; a first line alone will do. Nothing if the text is something else.
std::optional<HostLimits> host_limits_from_string(std::string_view text);

/// What rates measured just now say of limits that were kept. A kept limit that is exceeded was
/// measured while other work had a part of the machine; at another clock all limits are others.
enum class KeptLimits : uint8_t { kCurrent, kExceeded, kOtherClock };
/// `now` has the clock and the rates of multiply-adds.
KeptLimits judge_kept(const ir::Platform& kept, const ir::Platform& now);

/// Limit by limit, the larger one with its spread.
HostLimits larger_of(const HostLimits& a, const HostLimits& b);

/// Limits of this machine: from the cache folder if they were measured on the same CPU and
/// judge_kept says that they hold, else measured now (about two seconds) and kept. With registers
/// of `vector_bytes`; 0: the widest.
HostLimits host_limits(int64_t vector_bytes = 0);

/// Measures now and keeps that; limit by limit the larger one if `kept` is given.
HostLimits measure_host(int64_t vector_bytes = 0,
                        const std::optional<HostLimits>& kept = std::nullopt);

/// Whether limits of this machine are kept, so that host_limits need not measure.
bool is_host_measured();

/// Whether the limits of the machine at hand are measured, or left as its description has them.
enum class Limits : uint8_t { kMeasured, kAsDescribed };

/// "cpu" is this machine with its measured limits; "cpu:NAME field=value" is a table entry. An
/// instruction set ("cpu:x86-64-v3") that runs here is this machine, caches and cores, used with
/// that set, and its limits are measured so.
/// "cuda" is the GPU of this machine by its attributes and measured limits (gpu_platform.h), and so
/// is its architecture's name ("cuda:sm_90a"); words behind them override.
/// `threads` 0: all that the process may use; for "cpu" no more than these. `limits` is about
/// processors. Errors: TargetUnknown, TargetField; UsageOption for too many threads; CudaMissing and
/// others of gpu_platform for
/// "cuda".
Result<ir::Target> resolve_target(std::string_view text, int threads,
                                  Limits limits = Limits::kMeasured);

/// Whether so many threads of a kernel have a CPU each here: within the affinity mask and the quota
/// of the process. Errors: UsageOption.
Result<void> check_threads_here(int64_t threads);

/// Whether this machine can execute code for the target, tile registers (AMX) aside: kernels that use
/// them are refused when they are loaded. Errors: CpuFeatures, TargetNotHost.
Result<void> check_runs_here(const ir::Target& target);
bool runs_here(const ir::Target& target);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_PLATFORM_H_
