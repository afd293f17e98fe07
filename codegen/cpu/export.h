// Kernels for CPUs as libraries that any program can call.
#ifndef PRUNERC_CODEGEN_CPU_EXPORT_H_
#define PRUNERC_CODEGEN_CPU_EXPORT_H_

#include "codegen/artifact.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

/// A kernel of a net, and of which steps it is. Numbers are those of runtime/net/execute.h.
struct NetArgument {
  int place = 0;   ///< PrunercPlace
  int64_t at = 0;  ///< of what it is a number or an offset
};
struct NetStep {
  std::size_t kernel = 0;  ///< among NetParts::kernels
  std::vector<NetArgument> args;
};

/// A size that the net was compiled for several values of.
struct NetDim {
  std::string name;
  std::vector<int64_t> values;
};

/// What a call for one combination of sizes does. Its arena is the begin of the workspace.
struct NetPlan {
  std::vector<int64_t> sizes;         ///< a value of each of NetParts::dims
  std::vector<ArtifactParam> params;  ///< alike in all plans but for their shapes
  std::vector<NetStep> steps;
  int64_t arena_bytes = 0;  ///< a multiple of PRUNERC_ALIGNMENT
};

/// What a library of a net has in the place of a kernel.
struct NetParts {
  std::vector<const Artifact*> kernels;  ///< kCpuObject, each with an entry of its own name
  std::vector<NetDim> dims;              ///< empty: there is one plan
  std::vector<NetPlan> plans;            ///< one for each combination of their values
  std::string_view prepared;             ///< all that the prepare entries wrote, once
  /// Where `prepared` lies: the name of a file beside the library, or empty: within it.
  std::string weights_file = {};
};

/// A kernel (kCpuObject) and all that its files are made of.
struct CpuLibrary {
  /// Of a net: parameters, entry and workspace of the whole, no bytes.
  Artifact artifact;
  std::optional<NetParts> net = {};
  std::vector<std::string> cpu_features;  ///< that the code was compiled with: LLVM's names
  LibraryInfo info;
};

/// The declarations, for C and C++.
std::string cpu_library_header(const CpuLibrary& library);

/// Parameters of the first plan, entry, and workspace for any plan of a library of a net.
Artifact net_artifact(const NetParts& parts, std::string entry);

/// C11 that checks the arguments and the CPU, brings workspace and threads, and calls the kernel;
/// to be linked with the kernel's object. Needs nothing but a POSIX C library.
std::string cpu_library_source(const CpuLibrary& library);

enum class CpuLibraryForm : uint8_t { kShared, kArchive, kObject };

/// Both, compiled and linked. Functions that are not declared in the header are hidden.
/// Errors: HostCompiler, HostRejected, IoError.
Result<std::string> build_cpu_library(const CpuLibrary& library, CpuLibraryForm form);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CPU_EXPORT_H_
