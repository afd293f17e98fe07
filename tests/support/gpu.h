// Emitted CUDA text on the GPU of this machine, if it has one.
#ifndef PRUNERC_TESTS_SUPPORT_GPU_H_
#define PRUNERC_TESTS_SUPPORT_GPU_H_

#include "codegen/artifact.h"
#include "runtime/device.h"

#include <span>
#include <string_view>

namespace prunerc::testing {

/// Why nothing can be run here; empty if it can.
std::string why_no_gpu();

/// Compiles an artifact of kind kCudaSource by NVRTC for device 0, whatever it was printed for, and
/// checks it there as Job says, in a worker that later calls use again. A text that does not compile is kBuildError.
/// Call only if why_no_gpu is empty.
runtime::JobOutcome check_source_on_gpu(const codegen::Artifact& source,
                                        std::span<const std::string_view> inputs);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SUPPORT_GPU_H_
