// Runs an artifact of kernels compiled for the host in this process, on given tensors.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_RUN_H_
#define PRUNERC_RUNTIME_CUDA_HOST_RUN_H_

#include "codegen/artifact.h"
#include "runtime/cuda_host/object.h"
#include "runtime/cuda_host/options.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::runtime::cuda_host {

/// Runs the launches on parameters at the given addresses (one per parameter, 16-byte aligned).
/// Empty, or what the kernel did wrong. What a GPU would leave undefined may also end the process.
std::string run_launches(const codegen::Artifact& artifact, const KernelObject& object,
                         std::span<unsigned char* const> params, unsigned char* workspace,
                         const ExecutionOptions& options);

/// The outputs of the artifact (kCudaHostObject) for these inputs, each between guard pages;
/// outputs and workspace hold 0xFF before. Errors: KernelInput, KernelLoad, KernelRun, IoError.
Result<std::vector<std::string>> run_on_host(const codegen::Artifact& artifact,
                                             std::span<const std::string_view> inputs,
                                             const ExecutionOptions& options);

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_RUN_H_
