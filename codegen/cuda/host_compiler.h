// The C++ compiler that is found at run time.
#ifndef PRUNERC_CODEGEN_CUDA_HOST_COMPILER_H_
#define PRUNERC_CODEGEN_CUDA_HOST_COMPILER_H_

#include "ir/support/result.h"

#include <string>
#include <vector>

namespace prunerc::codegen {

/// The first of $PRUNERC_CXX, g++, clang++ and c++ that can be started. Errors: HostCompiler.
Result<std::string> find_host_compiler();

struct CompilerFlags {
  std::vector<std::string> options;
  std::vector<std::string> libraries;  ///< behind the source
};

/// The text as a shared object; an empty `compiler` means find_host_compiler's.
/// Errors: HostCompiler, HostRejected (with the compiler's messages), IoError.
Result<std::string> compile_shared(const std::string& text, const CompilerFlags& flags,
                                   std::string compiler = {});

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CUDA_HOST_COMPILER_H_
