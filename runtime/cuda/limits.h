// The measured limits of a GPU: multiply-adds, TensorCores, bandwidth of each memory, launches.
#ifndef PRUNERC_RUNTIME_CUDA_LIMITS_H_
#define PRUNERC_RUNTIME_CUDA_LIMITS_H_

#include "codegen/artifact.h"
#include "ir/support/result.h"
#include "ir/target.h"
#include "runtime/device.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::runtime::cuda {

enum class LimitKind : uint8_t {
  kLaunch,      ///< a kernel of one warp that does nothing
  kFma,         ///< f32 multiply-adds
  kTensor,      ///< f16 factors, f32 sums; the faster of wmma and, on sm_90a, wgmma
  kMemoryRead,  ///< more than fits L2
  kMemoryCopy,  ///< both sides counted
  kL2Read,      ///< by all multiprocessors, more than fits their first level
  kSharedRead,  ///< by all multiprocessors, 16 bytes a thread, no bank conflicts
};
inline constexpr int kNumLimitKinds = 7;

/// "shared memory, read".
std::string_view to_string(LimitKind kind);

/// A kernel whose time tells a limit. The workspace, if there is one, is only read, or its first
/// half copied onto the second.
struct LimitProbe {
  LimitKind kind = LimitKind::kLaunch;
  codegen::Artifact source;  ///< kCudaSource; all probes have the same text, so compile one of them
  std::vector<InputSpec> inputs;
  double work = 0;  ///< of one run; 0 for kLaunch. Units: flops or bytes
  /// The output's bytes if the workspace holds 0xFF everywhere; empty: not compared.
  std::string expected;
};

struct ProbeSizes {
  /// Of the loops that compute, and of what is read: 1 lasts some 100 us on the devices of the
  /// table; less is for running them on a processor.
  double scale = 1;
};

/// The probes of a GPU target, sized by its multiprocessors and its L2.
std::vector<LimitProbe> limit_probes(const ir::Target& target, const ProbeSizes& sizes = {});

/// Units: GFLOP/s and GB/s (1e9 a second) of the whole device.
struct GpuLimits {
  double launch_ns = 0;  ///< as the timer of measurements sees a launch that does nothing
  double fma_gflops = 0;
  double tensor_gflops = 0;
  double memory_read_gbps = 0;
  double memory_copy_gbps = 0;
  double l2_read_gbps = 0;
  double shared_read_gbps = 0;
  std::string timer;  ///< which rung of the ladder timed them

  bool operator==(const GpuLimits&) const = default;
};

/// One line of words "field=value", which reads back to equal limits.
std::string to_string(const GpuLimits& limits);
/// Nothing if the text is not what to_string gave, or a limit is missing or not positive.
std::optional<GpuLimits> limits_from_string(std::string_view text);

/// A probe's text as a cubin for its `cpu`.
using CompileProbe = std::function<Result<std::string>(const codegen::Artifact& source)>;

/// Runs each probe, compares what it computed, times it; the best time counts, of
/// the empty launch the median. The device's caches
/// must stay warm between launches (CudaDeviceOptions::cache). One cubin serves all probes.
/// Errors: those of `compile`; CudaCall, which names the probe that failed and why.
/// Cost: under two seconds, a third of it the compiler's and the context's.
Result<GpuLimits> measure_limits(Device& device, const std::vector<LimitProbe>& probes,
                                 const CompileProbe& compile);

/// The target with measured numbers for those of attributes and table. `tensor_macs_per_sm` becomes
/// what was reached at `clock_ghz`.
ir::Target with_limits(ir::Target target, const GpuLimits& limits);

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_LIMITS_H_
