#include "runtime/cpu/cpus.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>
#include <thread>

namespace prunerc::runtime {
namespace {

constexpr const char* kCgroups = "/sys/fs/cgroup";

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// Of the process in the unified hierarchy, as "/a/b"; "" if there is none.
std::string own_cgroup() {
  std::ifstream file("/proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("0::", 0) == 0) return line.substr(3);
  }
  return "";
}

// The least that the process's group and those around it allow; 0 without a limit.
int cpus_of_cgroups() {
  int least = 0;
  const auto take = [&](int cpus) {
    if (cpus > 0) least = least == 0 ? cpus : std::min(least, cpus);
  };
  for (std::string group = own_cgroup();; group.resize(group.find_last_of('/'))) {
    take(cpus_of_quota(first_line(kCgroups + group + "/cpu.max")));
    if (group.find('/') == std::string::npos) break;
  }
  // The first version of control groups.
  const std::string old = std::string(kCgroups) + "/cpu/cpu.cfs_";
  take(cpus_of_quota(first_line(old + "quota_us") + " " + first_line(old + "period_us")));
  return least;
}

int cpus_of_mask() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (sched_getaffinity(0, sizeof(mask), &mask) == 0) return CPU_COUNT(&mask);
  return static_cast<int>(std::thread::hardware_concurrency());
}

}  // namespace

int cpus_of_quota(std::string_view cpu_max) {
  int64_t quota = 0, period = 0;
  const char* const end = cpu_max.data() + cpu_max.size();
  const auto first = std::from_chars(cpu_max.data(), end, quota);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != ' ') return 0;
  const auto second = std::from_chars(first.ptr + 1, end, period);
  if (second.ec != std::errc() || quota <= 0 || period <= 0) return 0;
  return static_cast<int>(std::min<int64_t>(1 << 20, (quota - 1) / period + 1));
}

int usable_cpus() {
  const int mask = std::max(1, cpus_of_mask());
  const int quota = cpus_of_cgroups();
  return quota > 0 ? std::min(mask, quota) : mask;
}

}  // namespace prunerc::runtime
