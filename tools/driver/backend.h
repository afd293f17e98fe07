// Kernels for any target, and the device that runs them.
#ifndef PRUNERC_TOOLS_DRIVER_BACKEND_H_
#define PRUNERC_TOOLS_DRIVER_BACKEND_H_

#include "codegen/artifact.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/races.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"
#include "runtime/device.h"
#include "search/record/measurement.h"

#include <memory>
#include <string>
#include <vector>

namespace prunerc {

/// What the target's device takes: an object, a cubin by NVRTC, or for cuda-host a shared object by
/// the C++ compiler. Errors: those of compile_cpu, print_cuda_artifact, compile_cubin,
/// build_host_object.
Result<codegen::Artifact> build_kernel(const ir::Program& scheduled, const ir::Target& target);

/// A cubin, the text that it was made of, and what NVRTC said.
struct CudaBuild {
  std::string text;
  codegen::Artifact artifact;  // kCudaCubin
  codegen::Cubin cubin;
};
/// Errors: those of print_cuda_artifact, compile_cubin.
Result<CudaBuild> build_cubin(const ir::Program& scheduled, const ir::Target& target);

/// What a search gets: a kernel, or why it is not worth a measurement.
struct Candidate {
  codegen::Artifact artifact;
  MeasureStatus status = MeasureStatus::kOk;
  std::string detail;  // the cause, unless ok
};

/// Like build_kernel; rejects moreover, by what the compiler says: kernels that spill registers or
/// whose wgmma wait for each other.
Candidate build_candidate(const ir::Program& scheduled, const ir::Target& target);

/// The target, or for a GPU that this machine lacks the host that executes its kernels.
ir::Target with_device(const ir::Target& target);

/// What a checked run of a kernel may take on the target's device. Units: ns.
int64_t own_run_limit_ns(const ir::Target& target);

/// `run_limit_ns`: of one run of a kernel, which is killed then; 0 takes the device's own. Errors:
/// CudaMissing; Unsupported for a CPU that is not this one; UsageOption for more threads than the
/// process may use CPUs.
Result<std::unique_ptr<runtime::Device>> open_device(
    const ir::Target& target, int num_threads, const std::vector<std::string>& worker_command = {},
    int64_t run_limit_ns = 0);

/// Whether threads of a block meet where they must, in the kernels that become of the program; for
/// a GPU or cuda-host. Errors: those of lower_gpu.
Result<codegen::RaceReport> check_races(const ir::Program& scheduled, const ir::Target& target);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_BACKEND_H_
