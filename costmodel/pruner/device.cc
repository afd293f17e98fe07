#include "costmodel/pruner/device.h"

#include <algorithm>
#include <string>

namespace prunerc::costmodel {
namespace {

constexpr PrunerDevice kDevices[] = {
    // As released: peak, bandwidth, multiprocessors.
    {"k80", 8226, 480, 26},
    {"t4", 8141, 320, 40},
    {"titanv", 14900, 651, 80},
    {"orin", 2660, 204, 16},
    {"a100", 19490, 1935, 108},
    {"a100_40", 19490, 1555, 108},
    {"default", 14900, 550, 80},
    // NVIDIA H100 and H200 SXM: 66.9 TFLOP/s f32; 3.35 and 4.8 TB/s; 228 KB of shared memory.
    {"h100", 66900, 3350, 132, 1, 4, 32, 128, 233472},
    {"h200", 66900, 4800, 132, 1, 4, 32, 128, 233472},
};

}  // namespace

std::span<const PrunerDevice> pruner_devices() { return kDevices; }

Result<PrunerDevice> find_pruner_device(std::string_view name) {
  for (const PrunerDevice& device : kDevices) {
    if (device.name == name) return device;
  }
  return error(Diag::kTargetUnknown, std::string(name));
}

PrunerDevice pruner_device(const ir::Target& target) {
  PrunerDevice out;
  out.name = "target";
  out.peak_gflops = target.peak_gflops();
  out.bandwidth_gb_s = target.platform.memory_bandwidth * 1e-9;
  out.num_sms = static_cast<double>(std::max<int64_t>(target.num_sms, 1));
  out.warp_size = static_cast<double>(std::max<int64_t>(target.warp_size, 1));
  out.shared_bytes_per_sm = static_cast<double>(target.smem_bytes_per_sm);
  return out;
}

}  // namespace prunerc::costmodel
