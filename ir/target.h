// Target: what a program is compiled for. Plain data and a text form; no device is asked here.
#ifndef PRUNERC_IR_TARGET_H_
#define PRUNERC_IR_TARGET_H_

#include "ir/support/result.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::ir {

/// CudaHost: emitted CUDA text run on the CPU; limits are those of the GPU it stands for.
enum class TargetKind : uint8_t { kCpu, kCuda, kCudaHost };
std::string_view to_string(TargetKind kind);

/// Numbers measured on one machine; 0 where nothing was measured. Bandwidths are in bytes per
/// second.
struct Platform {
  double clock_ghz = 0;
  double fma_gflops = 0;      // f32 multiply-add rate of one CPU thread, or of the whole GPU
  double fma_gflops_all = 0;  // of all CPU threads together
  double l1_bandwidth = 0;    // one thread (GPU: shared memory, whole device)
  double l2_bandwidth = 0;
  double l3_bandwidth = 0;
  double memory_bandwidth = 0;  // one thread (GPU: whole device)
  double l2_bandwidth_all = 0;  // all threads
  double l3_bandwidth_all = 0;
  double memory_bandwidth_all = 0;
  double launch_ns = 0;  // fork-join of the thread pool, or an empty kernel
  bool operator==(const Platform&) const = default;
};

/// A machine. Fields that do not apply to its kind are 0.
struct Target {
  TargetKind kind = TargetKind::kCpu;
  std::string name;  // "cpu", "cpu:znver4", "cuda:sm_90a", "cuda-host:sm_90a"

  // CPU code generation: LLVM's names.
  std::string llvm_cpu;
  std::string llvm_features;  // "+avx2,-avx512f"; empty: what llvm_cpu implies

  // CPU core.
  int64_t vector_bytes = 0;  // widest register used: 16, 32 or 64
  int64_t num_vector_registers = 0;
  int64_t fma_ports = 0;  // full-width multiply-adds started per cycle
  int64_t fma_latency_cycles = 0;
  int64_t load_ports = 0;  // full-width loads per cycle

  // Memory hierarchy (CPU: l1d and l2 of one core, l3 of one socket; GPU: l2 of the device).
  int64_t l1d_bytes = 0;
  int64_t l2_bytes = 0;
  int64_t l3_bytes = 0;
  int64_t cache_line_bytes = 0;
  int64_t num_cores = 0;    // physical
  int64_t num_threads = 0;  // hardware threads

  // GPU limits.
  int64_t compute_capability = 0;  // 90 for sm_90a
  int64_t num_sms = 0;
  int64_t warp_size = 0;
  int64_t max_threads_per_block = 0;
  int64_t max_threads_per_sm = 0;
  int64_t max_blocks_per_sm = 0;
  int64_t registers_per_sm = 0;
  int64_t max_registers_per_thread = 0;
  int64_t smem_bytes_per_block = 0;  // with the opt-in attribute
  int64_t smem_bytes_per_sm = 0;
  int64_t fma_lanes_per_sm = 0;    // f32 multiply-adds per cycle
  int64_t load_lanes_per_sm = 0;   // loads and stores of one lane that start per cycle
  int64_t tensor_macs_per_sm = 0;  // dense f16 multiply-adds of tensor instructions per cycle

  /// 1: factors of f32 products may be rounded or cut to tf32, which loses 13 of 24 bits.
  int64_t allow_tf32 = 0;
  /// So many bytes of constants are read from one call of a kernel to the next, as in a network:
  /// kernels are tuned and timed with const inputs as far away as that makes them. 0: they lie where
  /// the call before left them. CPU only.
  int64_t constants_bytes = 0;
  /// The fingerprint of a network within which kernels were timed; empty: alone.
  std::string network;

  Platform platform;
  bool operator==(const Target&) const = default;

  /// Lanes of one vector register for elements of this many bytes; at least 1.
  int64_t lanes(int64_t element_bytes) const {
    return vector_bytes > element_bytes ? vector_bytes / element_bytes : 1;
  }
  /// Measured f32 peak in Gflop/s if there is one, else that of the table at its clock.
  /// One CPU thread, or the whole GPU.
  double peak_gflops() const;
};

/// Names of the built-in table, "cpu" (an unnamed x86-64-v3 machine) first.
std::vector<std::string> target_names();

/// GPUs as sold, "cuda:a100": names that target_from_string takes besides those of the table. What
/// they give is a target of the table with that device's numbers, for studies without the device
/// and for builds for it.
std::vector<std::string> device_names();

/// A name, optionally followed by `field=value` words that override the table: "cpu:znver4
/// num_cores=8". Errors: TargetUnknown, TargetField.
Result<Target> target_from_string(std::string_view text);

/// Whether a CPU has an instruction set by LLVM's name ("avx512vnni"): as `llvm_features` says, else as
/// the table knows `llvm_cpu`. Only sets that a rule asks for are in the table.
bool has_feature(const Target& target, std::string_view name);

/// The shortest text that target_from_string reads back to an equal value.
std::string to_string(const Target& target);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_TARGET_H_
