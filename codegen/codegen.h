// From a program to a kernel for this machine or a named CPU.
#ifndef PRUNERC_CODEGEN_CODEGEN_H_
#define PRUNERC_CODEGEN_CODEGEN_H_

#include "codegen/artifact.h"
#include "codegen/pipeline.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

struct CpuOptions {
  PipelineOptions pipeline;
  std::string symbol;  ///< of the entry; empty: `prunerc_<fingerprint>`
};

/// Compiles any program without tile parameters, scheduled or not, to an object with one entry; with
/// const inputs to one that has a prepare entry as well (hoist.h). A target without an LLVM CPU name
/// means the host.
/// Deterministic. Threads: any number at once.
/// Errors: Unsupported (tile parameters, shapes that are not constant, an unknown CPU), Internal.
Result<Artifact> compile_cpu(const ir::Program& scheduled, const ir::Target& target,
                             const CpuOptions& options = {});

struct CudaOptions {
  PipelineOptions pipeline;
};

/// The program as CUDA text with its launches (ArtifactKind::kCudaSource): what NVRTC compiles and
/// what runs on the host. The entry of launch i is `prunerc_<fingerprint>_k<i>`.
/// Deterministic. Threads: any number at once.
/// Errors: ThreadKernel, ThreadOwner, GpuLimit, Unsupported.
Result<Artifact> print_cuda_artifact(const ir::Program& scheduled, const ir::Target& target,
                                     const CudaOptions& options = {});

/// The same for a program that lower_gpu has made; kernels are called `symbol`_k0 and so on.
Result<Artifact> print_lowered_cuda(const ir::Program& lowered, const ir::Target& target,
                                    std::string_view symbol);

/// "sm_90a" of "cuda:sm_90a".
std::string architecture_of(const ir::Target& target);

/// A kernel alone, in one of its forms.
enum class EmitKind : uint8_t {
  kObject,
  kAssembly,
  kLlvmText,  // after optimisation
};

/// What an object is made of, lowered: the kernel's program, then with const inputs that which
/// prepares them. Errors: those of compile_cpu.
Result<std::vector<ir::Program>> lower_functions(const ir::Program& scheduled,
                                                 const ir::Target& target,
                                                 const CpuOptions& options = {});

/// The contents of such a file. Errors: those of compile_cpu.
Result<std::string> emit_cpu(const ir::Program& scheduled, const ir::Target& target, EmitKind kind,
                             const CpuOptions& options = {});

/// The machine that runs this: CPU name, features and vector width as LLVM detects them, the rest
/// from `base`.
ir::Target host_target(const ir::Target& base);

/// What code for the target can use: names of LLVM's features, implied ones included. Errors: those
/// of compile_cpu about the target.
Result<std::vector<std::string>> cpu_features(const ir::Target& target);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CODEGEN_H_
