// Kernels for CPUs as libraries that any program can call.
#ifndef PRUNERC_CODEGEN_CPU_EXPORT_H_
#define PRUNERC_CODEGEN_CPU_EXPORT_H_

#include "codegen/artifact.h"

#include <cstdint>
#include <string>
#include <vector>

namespace prunerc::codegen {

/// What a library says of itself (PrunercInfo in library.h).
struct LibraryInfo {
  std::string symbol;  ///< of the function; the others' names begin with it
  std::string name;    ///< of the operator
  std::string bindings;
  std::string target;
  std::string version;  ///< of the prunerc that compiles
  int64_t record_id = 0;
  std::string record_version;  ///< of the prunerc that tuned
  double tuned_ns = 0;
  double flops = 0;
  int num_threads = 1;  ///< 1: the library has no pool
};

/// A kernel (kCpuObject) and all that its files are made of.
struct CpuLibrary {
  Artifact artifact;
  std::vector<std::string> cpu_features;  ///< that the code was compiled with: LLVM's names
  LibraryInfo info;
};

/// The declarations, for C and C++.
std::string cpu_library_header(const CpuLibrary& library);

/// C11 that checks the arguments and the CPU, brings workspace and threads, and calls the kernel;
/// to be linked with the kernel's object. Needs nothing but a POSIX C library.
std::string cpu_library_source(const CpuLibrary& library);

enum class CpuLibraryForm : uint8_t { kShared, kArchive, kObject };

/// Both, compiled and linked. Functions that are not declared in the header are hidden.
/// Errors: HostCompiler, HostRejected, IoError.
Result<std::string> build_cpu_library(const CpuLibrary& library, CpuLibraryForm form);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_EXPORT_H_
