// Kernel text to a cubin or PTX by NVRTC, which is opened at run time; no GPU and no driver needed.
#ifndef PRUNERC_CODEGEN_CUDA_NVRTC_H_
#define PRUNERC_CODEGEN_CUDA_NVRTC_H_

#include "codegen/cuda/cubin.h"

#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

struct NvrtcInfo {
  std::string path;  ///< of the library
  int major = 0;
  int minor = 0;
  std::vector<int> archs;  ///< 80, 90, ..
};

/// Opens NVRTC at the first call: $PRUNERC_NVRTC, else as cuda_library_candidates says.
/// Errors: NvrtcMissing.
Result<NvrtcInfo> nvrtc_info();

/// What NVRTC says of a kernel in its log (ptxas -v), beyond what a cubin holds.
struct SpillInfo {
  std::string kernel;
  int64_t registers = 0;
  int64_t stack_bytes = 0;
  int64_t spill_store_bytes = 0;
  int64_t spill_load_bytes = 0;

  bool operator==(const SpillInfo&) const = default;
};

struct Cubin {
  std::string bytes;
  std::string log;  ///< of the compiler
  CubinInfo info;
  std::vector<SpillInfo> spills;
  /// The compiler had to wait after each wgmma (C7511 and its kin): several times slower than
  /// meant.
  bool serializes_wgmma = false;

  bool operator==(const Cubin&) const = default;
};

struct NvrtcOptions {
  /// Results are kept here, keyed by NVRTC's version, the options and the whole text; empty:
  /// nowhere.
  std::string cache_folder;
};

/// `arch` is "sm_80", "sm_89", "sm_90a" or another that NVRTC knows. Threads: any number at a time.
/// Errors: NvrtcMissing, NvrtcRejected (with the log), CubinMalformed.
Result<Cubin> compile_cubin(std::string_view kernel_text, std::string_view arch,
                            const NvrtcOptions& options);

/// Errors: NvrtcMissing, NvrtcRejected.
Result<std::string> compile_ptx(std::string_view kernel_text, std::string_view arch);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CUDA_NVRTC_H_
