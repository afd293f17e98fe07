// Emitted kernel text made whole: what a compiler needs in front of it and behind it.
#ifndef PRUNERC_CODEGEN_CUDA_PRELUDE_H_
#define PRUNERC_CODEGEN_CUDA_PRELUDE_H_

#include <span>
#include <string>
#include <string_view>

namespace prunerc::codegen {

/// CUDA C for NVRTC. `arch` is "sm_80" or the like; sm_90a also gets the wrappers of Hopper, with
/// wgmma in just the shapes that the text uses (one definition for every shape would triple the
/// front end's time).
std::string device_text(std::string_view kernel_text, std::string_view arch);

/// C++17 for the compiler of the host: a shared object for runtime/cuda_host. `kernels` are the
/// functions to launch. Lines of the kernel text keep their numbers, in a file called kernel.cu.
std::string host_text(std::string_view kernel_text, std::span<const std::string> kernels);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CUDA_PRELUDE_H_
