// How many CPUs this process may use.
#ifndef PRUNERC_RUNTIME_CPU_CPUS_H_
#define PRUNERC_RUNTIME_CPU_CPUS_H_

#include <string_view>

namespace prunerc::runtime {

/// CPUs of the process's affinity mask, or fewer if a control group's quota is enough for fewer,
/// rounded up. At least 1.
int usable_cpus();

/// CPUs that a quota is enough for, rounded up: of the text of cgroup's `cpu.max`, "150000 100000"
/// or "max 100000". 0 without a limit, and for anything else.
int cpus_of_quota(std::string_view cpu_max);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_CPUS_H_
