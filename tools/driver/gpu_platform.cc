#include "tools/driver/gpu_platform.h"

#include "codegen/cuda/nvrtc.h"
#include "ir/support/file.h"
#include "ir/support/hash.h"
#include "runtime/cuda/attributes.h"
#include "runtime/cuda/device.h"
#include "runtime/cuda/driver.h"
#include "tools/driver/platform.h"

#include <fmt/format.h>

#include <mutex>
#include <vector>

namespace prunerc {
namespace {

namespace cuda = runtime::cuda;

Result<cuda::GpuLimits> measure(const ir::Target& target) {
  PRUNERC_TRY(const std::unique_ptr<cuda::CudaDevice> device,
              cuda::CudaDevice::open({.cache = runtime::CacheState::kWarm}));
  return cuda::measure_limits(*device, cuda::limit_probes(target),
                              [](const codegen::Artifact& source) -> Result<std::string> {
                                PRUNERC_TRY(codegen::Cubin cubin,
                                            codegen::compile_cubin(source.bytes, source.cpu, {}));
                                return std::move(cubin.bytes);
                              });
}

Result<GpuPlatform> find_gpu(bool remeasure) {
  PRUNERC_TRY(const cuda::Driver* api, cuda::driver());
  PRUNERC_TRY(cuda::DeviceDescription device, cuda::describe_device(*api));
  GpuPlatform gpu;
  gpu.name = std::move(device.name);
  gpu.driver_version = device.driver_version;
  gpu.target = std::move(device.target);
  const std::string path = limits_file(gpu);
  if (!remeasure && !path.empty()) {
    const Result<std::string> kept = read_file(path);
    if (kept.ok()) gpu.limits = cuda::limits_from_string(*kept);
  }
  if (!gpu.limits) {
    const Result<cuda::GpuLimits> measured = measure(gpu.target);
    if (measured.ok()) gpu.limits = *measured;
    if (!measured.ok()) gpu.problem = measured.error().message();
    // A folder that cannot be written to costs the next process a second, and nothing else.
    if (measured.ok() && !path.empty()) {
      static_cast<void>(replace_file(path, cuda::to_string(*measured) + "\n"));
    }
  }
  if (gpu.limits) gpu.target = cuda::with_limits(std::move(gpu.target), *gpu.limits);
  return gpu;
}

}  // namespace

std::string limits_file(const GpuPlatform& gpu) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  const std::vector<cuda::LimitProbe> probes = cuda::limit_probes(gpu.target);
  const std::string key = fmt::format("{}, driver {}, probes {:016x}", gpu.name, gpu.driver_version,
                                      hash_bytes(probes.front().source.bytes));
  return fmt::format("{}/platform-gpu-{:016x}.txt", folder, hash_bytes(key));
}

Result<GpuPlatform> gpu_platform(bool remeasure) {
  static std::mutex mutex;
  const std::lock_guard<std::mutex> lock(mutex);
  static Result<GpuPlatform> found = find_gpu(remeasure);
  static bool is_first = true;
  if (remeasure && !is_first) found = find_gpu(remeasure);
  is_first = false;
  return found;
}

}  // namespace prunerc
