// The machine at hand as a target: description, measured limits (cached), threads.
#ifndef PRUNERC_TOOLS_DRIVER_PLATFORM_H_
#define PRUNERC_TOOLS_DRIVER_PLATFORM_H_

#include "ir/support/result.h"
#include "ir/target.h"

#include <string>
#include <string_view>

namespace prunerc {

/// "$XDG_CACHE_HOME/prunerc" or "~/.cache/prunerc"; the folder is made. Empty if there is no place
/// to write.
std::string cache_folder();

/// Limits of this machine: from the cache folder if they were measured on the same CPU, else
/// measured now (about two seconds) and kept. Kept limits that the machine exceeds, since it was
/// busy then, are measured again: per limit the larger value stays. `remeasure` ignores what is
/// kept. With registers of `vector_bytes`; 0: the widest.
ir::Platform host_platform(bool remeasure = false, int64_t vector_bytes = 0);

/// Whether limits of this machine are kept, so that host_platform need not measure.
bool is_host_measured();

/// "cpu" is this machine with its measured limits; "cpu:NAME field=value" is a table entry. An
/// instruction set ("cpu:x86-64-v3") that runs here is this machine, caches and cores, used with
/// that set, and its limits are measured so.
/// "cuda" is the GPU of this machine by its attributes and measured limits (gpu_platform.h), and so
/// is its architecture's name ("cuda:sm_90a"); words behind them override.
/// `threads` 0: all. Errors: TargetUnknown, TargetField; CudaMissing and others of gpu_platform for
/// "cuda".
Result<ir::Target> resolve_target(std::string_view text, int threads);

/// Whether this machine can execute code for the target.
bool runs_here(const ir::Target& target);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_PLATFORM_H_
