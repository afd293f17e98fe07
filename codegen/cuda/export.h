// Kernels of a cubin as a library that anything can call with DLPack tensors.
#ifndef PRUNERC_CODEGEN_CUDA_EXPORT_H_
#define PRUNERC_CODEGEN_CUDA_EXPORT_H_

#include "codegen/artifact.h"

#include <string>
#include <string_view>

namespace prunerc::codegen {

/// C11 that carries the cubin (kCudaCubin) and launches it through libcuda.so.1, which it opens at
/// the first call. Needs no CUDA headers and no prunerc; what it exports is in
/// cuda_launcher_header. `ptx` is for GPUs of later generations, which cannot run the cubin; empty:
/// they get an error.
std::string cuda_launcher_source(const Artifact& cubin, std::string_view ptx,
                                 std::string_view symbol);

/// The declarations: `symbol`_dlpack takes DLPack tensors and a stream, `symbol`_error says what
/// went wrong.
std::string cuda_launcher_header(const Artifact& cubin, std::string_view symbol);

/// The source as a shared library. Errors: HostCompiler, HostRejected, IoError.
Result<std::string> build_cuda_library(const Artifact& cubin, std::string_view ptx,
                                       std::string_view symbol);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CUDA_EXPORT_H_
