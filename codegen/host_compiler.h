// The C and C++ compilers that are found at run time.
#ifndef PRUNERC_CODEGEN_HOST_COMPILER_H_
#define PRUNERC_CODEGEN_HOST_COMPILER_H_

#include "ir/support/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

/// The first of $PRUNERC_CXX, g++, clang++ and c++ that can be started. Errors: HostCompiler.
Result<std::string> find_host_compiler();

/// The same for C: of $PRUNERC_CXX, cc, gcc, clang, and then those of C++.
Result<std::string> find_c_compiler();

/// A file for the compiler, which takes it by its suffix for what it is.
struct CompilerInput {
  std::string name;  ///< "kernel.cc", "kernel.o"
  std::string_view bytes;
};

/// What the compiler makes of the files, in a folder of its own; `libraries` stand behind them.
/// Errors: HostCompiler, HostRejected (with the compiler's messages), IoError.
Result<std::string> run_compiler(const std::string& compiler,
                                 const std::vector<std::string>& options,
                                 const std::vector<CompilerInput>& inputs,
                                 const std::vector<std::string>& libraries = {});

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_HOST_COMPILER_H_
