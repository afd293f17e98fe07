// Emitted CUDA text, compiled for the host and run in this process.
#ifndef PRUNERC_TESTS_SUPPORT_CUDA_HOST_H_
#define PRUNERC_TESTS_SUPPORT_CUDA_HOST_H_

#include "codegen/artifact.h"
#include "runtime/cuda_host/options.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::testing {

/// Outputs of an artifact of kind kCudaSource for these inputs. Errors: those of
/// codegen::build_host_object and runtime::cuda_host::run_on_host.
Result<std::vector<std::string>> run_source_on_host(
    const codegen::Artifact& source, std::span<const std::string_view> inputs,
    const runtime::cuda_host::ExecutionOptions& options);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_CUDA_HOST_H_
