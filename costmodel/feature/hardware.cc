#include "costmodel/feature/hardware.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace prunerc::costmodel {
namespace {

constexpr double kGiga = 1e-9;
constexpr double kF32Bytes = 4;

double positive(int64_t n) { return static_cast<double>(std::max<int64_t>(n, 0)); }

// Of the whole machine; where only one thread was measured, that.
double whole(double all, double one) { return all > 0 ? all : one; }

}  // namespace

HardwareFeatures hardware_features(const ir::Target& t) {
  const bool is_gpu = t.kind != ir::TargetKind::kCpu;
  const ir::Platform& p = t.platform;
  const double cores = positive(is_gpu ? t.num_sms : t.num_cores);
  const double lanes = is_gpu ? positive(t.warp_size) : positive(t.vector_bytes) / kF32Bytes;
  const double macs = is_gpu ? positive(t.fma_lanes_per_sm) : lanes * positive(t.fma_ports);
  const double gflops = is_gpu ? t.peak_gflops() : whole(p.fma_gflops_all, t.peak_gflops());
  const double threads =
      is_gpu ? positive(t.max_threads_per_sm) : positive(t.num_threads) / std::max(1.0, cores);
  const double register_bytes = is_gpu
                                    ? positive(t.registers_per_sm) * kF32Bytes
                                    : positive(t.num_vector_registers) * positive(t.vector_bytes);
  HardwareFeatures out = {};
  std::size_t at = 0;
  out[at++] = is_gpu ? 1 : 0;
  for (const double x :
       {cores, threads, lanes, 2 * macs, gflops, positive(t.tensor_macs_per_sm), register_bytes,
        positive(is_gpu ? t.max_registers_per_thread : t.num_vector_registers),
        positive(is_gpu ? t.smem_bytes_per_sm : t.l1d_bytes), positive(t.smem_bytes_per_block),
        positive(t.l2_bytes), positive(t.l3_bytes),
        kGiga * whole(p.l2_bandwidth_all, p.l2_bandwidth),
        kGiga * whole(p.memory_bandwidth_all, p.memory_bandwidth), p.launch_ns}) {
    out[at++] = static_cast<float>(std::log2(1 + x));
  }
  return out;
}

}  // namespace prunerc::costmodel
