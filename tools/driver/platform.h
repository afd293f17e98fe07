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
/// kept.
ir::Platform host_platform(bool remeasure = false);

/// "cpu" is this machine with its measured limits; "cpu:NAME field=value" is a table entry.
/// `threads` 0: all. Errors: TargetUnknown, TargetField.
Result<ir::Target> resolve_target(std::string_view text, int threads);

/// Whether this machine can execute code for the target.
bool runs_here(const ir::Target& target);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_PLATFORM_H_
