// What this machine is: caches, cores and instruction set, without measuring anything.
#ifndef PRUNERC_RUNTIME_CPU_HOST_H_
#define PRUNERC_RUNTIME_CPU_HOST_H_

#include "ir/target.h"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace prunerc::runtime {

struct CacheSizes {
  int64_t l1d_bytes = 32 << 10;
  int64_t l2_bytes = 512 << 10;
  int64_t l3_bytes = 0;  ///< of the socket; 0 if there is none
  int64_t line_bytes = 64;

  bool operator==(const CacheSizes&) const = default;
};

/// Caches of CPU 0 as the kernel reports them; the defaults above for what it does not say.
CacheSizes host_caches();

/// LLVM's name of this CPU ("znver4"), and the vector extensions that the running system does or
/// does not allow ("+avx2,-avx512f"), with what hidden_features says behind them. What it
/// first said stays for the process, even if the system changes its mind about tile registers.
struct HostIsa {
  std::string llvm_cpu;
  std::string llvm_features;
  bool has_avx512 = false;
};
HostIsa host_isa();

/// ",-gfni,-avx512vbmi": extensions besides the usual ones that the CPU's name implies and that `has`
/// denies, as a virtual machine may hide them. "" for a name that LLVM does not know.
std::string hidden_features(std::string_view llvm_cpu,
                            const std::function<bool(std::string_view name)>& has);

/// "AMD EPYC 9R45, 2 threads": for people and for records.
std::string host_model_name();

/// "AMD EPYC, 2 threads (znver5)": as results name this machine. Virtual ones often hide which EPYC
/// they are.
std::string host_name();

/// This machine as a target named `name`, without measured numbers. What cannot be found out keeps
/// the value of the built-in "cpu" target.
ir::Target host_target(std::string_view name = "cpu");

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_HOST_H_
