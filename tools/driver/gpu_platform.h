// The GPU at hand as a target: its attributes, and its measured limits (cached).
#ifndef PRUNERC_TOOLS_DRIVER_GPU_PLATFORM_H_
#define PRUNERC_TOOLS_DRIVER_GPU_PLATFORM_H_

#include "ir/support/result.h"
#include "ir/target.h"
#include "runtime/cuda/limits.h"

#include <optional>
#include <string>

namespace prunerc {

struct GpuPlatform {
  std::string name;        ///< "NVIDIA H200"
  int driver_version = 0;  ///< 13000
  /// By attributes, and by `limits` where there are any.
  ir::Target target;
  std::optional<runtime::cuda::GpuLimits> limits;
  std::string problem;  ///< why there are none
};

/// Where the limits of a device of this name are kept; empty without a cache folder. Another driver
/// and other kernels that probe have another file.
std::string limits_file(const GpuPlatform& gpu);

/// Device 0. Limits come from the cache folder if they were measured on a device of this name under
/// this driver by these kernels, else they are measured now (about a second) and kept; `remeasure`
/// ignores what is kept. Asked once per process, but for `remeasure`. Errors: CudaMissing,
/// CudaCall, TargetUnknown.
Result<GpuPlatform> gpu_platform(bool remeasure = false);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_GPU_PLATFORM_H_
