// What machine code and launches of a kernel must not do, whatever values come out.
#ifndef PRUNERC_TESTS_BENCH_GPU_HOST_LINT_H_
#define PRUNERC_TESTS_BENCH_GPU_HOST_LINT_H_

#include "codegen/artifact.h"
#include "codegen/cuda/cubin.h"
#include "tests/bench/gpu_host/sass.h"

#include <string>
#include <vector>

namespace prunerc::bench {

/// All that the rules look at, of one kernel.
struct LintedKernel {
  SassKernel sass;
  codegen::KernelResources resources;
  codegen::Launch launch;
  std::string text;  ///< the kernel's CUDA text
};

/// The kernels of an artifact (kCudaSource) in the order of its launches. Errors: those of NVRTC and
/// disassemble.
Result<std::vector<LintedKernel>> linted_kernels(const codegen::Artifact& source,
                                                 const std::string& arch);

enum class LintRule : uint8_t {
  kLocal,       ///< no local memory: no stack, LDL or STL
  kRegisters,   ///< registers of a block fit the register file
  kSetmaxnreg,  ///< so do those after warpgroups traded theirs
  kArrive,      ///< a WARPGROUP.ARRIVE before each batch of wgmma
  kDepbar,      ///< a WARPGROUP.DEPBAR for all of them behind the last
  kCommit,      ///< the last wgmma of a batch closes its group (gsb0)
  kFence,       ///< FENCE.VIEW.ASYNC between writes to shared memory and what the async proxy reads
  kExpectTx,    ///< a barrier expects the bytes of the boxes that follow
  kGpuFence,    ///< no fence of the whole GPU in the main loop
  kMapPitch,    ///< rows of a tensor map at multiples of 16 bytes, its base too
};
inline constexpr int kNumLintRules = 10;
std::string_view to_string(LintRule rule);

struct Violation {
  LintRule rule = LintRule::kLocal;
  std::string what;
};
std::vector<Violation> lint(const LintedKernel& kernel);

/// Breaks the rule in a kernel that keeps it; false if it has no place where it could.
bool plant_violation(LintRule rule, LintedKernel* kernel);

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_GPU_HOST_LINT_H_
