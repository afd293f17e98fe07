// Kernels for a machine without a GPU: emitted CUDA text compiled by the C++ compiler that is found
// at run time, as a shared object for runtime/cuda_host.
#ifndef PRUNERC_CODEGEN_CUDA_HOST_OBJECT_H_
#define PRUNERC_CODEGEN_CUDA_HOST_OBJECT_H_

#include "codegen/artifact.h"

#include <string>

namespace prunerc::codegen {

/// What the object is instrumented for; it must be loaded by a worker of the same kind.
enum class HostChecker : uint8_t { kNone, kRace, kBounds };

struct HostObjectOptions {
  HostChecker checker = HostChecker::kNone;
  std::string compiler = {};  ///< empty: find_host_compiler
  int optimization = 1;       ///< level; 2 compiles longer and runs up to 1.7 times as fast
};

/// The artifact (kCudaSource) with its text replaced by a shared object (kCudaHostObject).
/// Errors: HostCompiler, HostRejected (with the compiler's messages), IoError.
Result<Artifact> build_host_object(const Artifact& source, const HostObjectOptions& options);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CUDA_HOST_OBJECT_H_
