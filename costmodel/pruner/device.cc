#include "costmodel/pruner/device.h"

#include "costmodel/latency/cpu.h"
#include "costmodel/latency/tile.h"
#include "costmodel/latency/traffic.h"

#include <algorithm>
#include <string>

namespace prunerc::costmodel {
namespace {

constexpr int64_t kFloatBytes = 4;

// Dense f16 rates of tensor cores (NVIDIA: A100 data sheet 2021, Titan V product page, H100 data sheet
// 2023); the published table has none.
constexpr double kA100Tensor = 312000, kTitanVTensor = 110000, kH100Tensor = 989000;
constexpr double kHopperShared = 228 * 1024;

constexpr PrunerDevice kDevices[] = {
    // As released: peak, bandwidth, multiprocessors.
    {"k80", 8226, 480, 26},
    {"t4", 8141, 320, 40},
    {.name = "titanv",
     .peak_gflops = 14900,
     .bandwidth_gb_s = 651,
     .num_sms = 80,
     .tensor_gflops = kTitanVTensor},
    {"orin", 2660, 204, 16},
    {.name = "a100",
     .peak_gflops = 19490,
     .bandwidth_gb_s = 1935,
     .num_sms = 108,
     .tensor_gflops = kA100Tensor},
    {.name = "a100_40",
     .peak_gflops = 19490,
     .bandwidth_gb_s = 1555,
     .num_sms = 108,
     .tensor_gflops = kA100Tensor},
    {"default", 14900, 550, 80},
    // NVIDIA H100 and H200 SXM: 66.9 TFLOP/s f32; 3.35 and 4.8 TB/s; 228 KB of shared memory.
    {.name = "h100",
     .peak_gflops = 66900,
     .bandwidth_gb_s = 3350,
     .num_sms = 132,
     .shared_bytes_per_sm = kHopperShared,
     .tensor_gflops = kH100Tensor},
    {.name = "h200",
     .peak_gflops = 66900,
     .bandwidth_gb_s = 4800,
     .num_sms = 132,
     .shared_bytes_per_sm = kHopperShared,
     .tensor_gflops = kH100Tensor},
};

PrunerDevice cpu_device(const ir::Target& target) {
  const ir::Platform& platform = target.platform;
  const auto threads = static_cast<double>(std::max<int64_t>(target.num_threads, 1));
  const double one = platform.memory_bandwidth > 0 ? platform.memory_bandwidth * 1e-9
                                                   : kMemoryBytesPerCycle * platform.clock_ghz;
  PrunerDevice out;
  out.name = "target";
  out.peak_gflops =
      platform.fma_gflops_all > 0 ? platform.fma_gflops_all : threads * target.peak_gflops();
  out.bandwidth_gb_s = std::max(one, platform.memory_bandwidth_all * 1e-9);
  out.num_sms = threads;
  out.partitions_per_sm = 1;
  out.vector_bytes = std::max<int64_t>(target.vector_bytes, kFloatBytes);
  out.warp_size = static_cast<double>(out.vector_bytes / kFloatBytes);
  out.registers_per_thread = vector_registers(target);
  out.shared_bytes_per_sm = static_cast<double>(target.l2_bytes);
  out.transaction_bytes = line_bytes(target);
  return out;
}

}  // namespace

std::span<const PrunerDevice> pruner_devices() { return kDevices; }

Result<PrunerDevice> find_pruner_device(std::string_view name) {
  for (const PrunerDevice& device : kDevices) {
    if (device.name == name) return device;
  }
  return error(Diag::kTargetUnknown, std::string(name));
}

PrunerDevice pruner_device(const ir::Target& target) {
  if (target.kind == ir::TargetKind::kCpu) return cpu_device(target);
  PrunerDevice out;
  out.name = "target";
  out.peak_gflops = target.peak_gflops();
  out.bandwidth_gb_s = target.platform.memory_bandwidth * 1e-9;
  out.num_sms = static_cast<double>(std::max<int64_t>(target.num_sms, 1));
  out.warp_size = static_cast<double>(std::max<int64_t>(target.warp_size, 1));
  out.shared_bytes_per_sm = static_cast<double>(target.smem_bytes_per_sm);
  out.tensor_gflops =
      2 * out.num_sms * static_cast<double>(target.tensor_macs_per_sm) * target.platform.clock_ghz;
  return out;
}

}  // namespace prunerc::costmodel
