#include "runtime/cuda/attributes.h"

#include <algorithm>
#include <array>

namespace prunerc::runtime::cuda {
namespace {

constexpr int kMaxNameBytes = 256;
constexpr double kKiloHertzPerGigaHertz = 1e6;
/// Data move on both edges of the memory's clock.
constexpr double kTransfersPerCycle = 2;
constexpr int kNumMinors = 10;

struct CountAttribute {
  int attribute;
  int64_t ir::Target::*field;
};
constexpr std::array kCounts = {
    CountAttribute{kAttrMaxThreadsPerBlock, &ir::Target::max_threads_per_block},
    CountAttribute{kAttrWarpSize, &ir::Target::warp_size},
    CountAttribute{kAttrNumSms, &ir::Target::num_sms},
    CountAttribute{kAttrL2Bytes, &ir::Target::l2_bytes},
    CountAttribute{kAttrMaxThreadsPerSm, &ir::Target::max_threads_per_sm},
    CountAttribute{kAttrSharedPerSm, &ir::Target::smem_bytes_per_sm},
    CountAttribute{kAttrRegistersPerSm, &ir::Target::registers_per_sm},
    CountAttribute{kAttrSharedPerBlock, &ir::Target::smem_bytes_per_block},
    CountAttribute{kAttrMaxBlocksPerSm, &ir::Target::max_blocks_per_sm},
};

Result<int64_t> attribute(const Driver& api, int which, int device) {
  int value = 0;
  PRUNERC_CUDA(api, cuDeviceGetAttribute, &value, which, device);
  return int64_t{value};
}

Result<ir::Target> table_entry(int64_t major, int64_t minor) {
  const std::string first = "cuda:sm_" + std::to_string(10 * major + minor);
  if (Result<ir::Target> own = ir::target_from_string(first + "a"); own.ok()) return own;
  for (int64_t below = std::min<int64_t>(minor, kNumMinors - 1); below >= 0; --below) {
    Result<ir::Target> found =
        ir::target_from_string("cuda:sm_" + std::to_string(10 * major + below));
    if (found.ok()) return found;
  }
  return ir::target_from_string(first);
}

}  // namespace

Result<DeviceDescription> describe_device(const Driver& api) {
  DeviceDescription out;
  int device = 0;
  std::string name(kMaxNameBytes, '\0');
  PRUNERC_CUDA(api, cuDeviceGet, &device, 0);
  PRUNERC_CUDA(api, cuDeviceGetName, name.data(), kMaxNameBytes, device);
  PRUNERC_CUDA(api, cuDriverGetVersion, &out.driver_version);
  out.name = name.c_str();
  PRUNERC_TRY(const int64_t major, attribute(api, kAttrMajor, device));
  PRUNERC_TRY(const int64_t minor, attribute(api, kAttrMinor, device));
  PRUNERC_TRY(out.target, table_entry(major, minor));
  out.target.compute_capability = 10 * major + minor;
  for (const CountAttribute& count : kCounts) {
    PRUNERC_TRY(const int64_t value, attribute(api, count.attribute, device));
    if (value > 0) out.target.*count.field = value;
  }
  PRUNERC_TRY(const int64_t clock_khz, attribute(api, kAttrClockKhz, device));
  PRUNERC_TRY(const int64_t memory_khz, attribute(api, kAttrMemoryClockKhz, device));
  PRUNERC_TRY(const int64_t bus_bits, attribute(api, kAttrBusBits, device));
  ir::Platform& platform = out.target.platform;
  if (clock_khz > 0) platform.clock_ghz = static_cast<double>(clock_khz) / kKiloHertzPerGigaHertz;
  if (memory_khz > 0 && bus_bits > 0) {
    platform.memory_bandwidth = kTransfersPerCycle * 1e3 * static_cast<double>(memory_khz) *
                                static_cast<double>(bus_bits) / 8;
    platform.memory_bandwidth_all = platform.memory_bandwidth;
  }
  return out;
}

}  // namespace prunerc::runtime::cuda
