// What a kernel needs of a GPU, read from a cubin without a GPU and without NVIDIA's tools.
#ifndef PRUNERC_CODEGEN_CUDA_CUBIN_H_
#define PRUNERC_CODEGEN_CUDA_CUBIN_H_

#include "ir/support/result.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

struct KernelResources {
  std::string kernel;
  int64_t registers = 0;     ///< per thread
  int64_t stack_bytes = 0;   ///< per thread: spills, or arrays that are indexed at run time
  int64_t shared_bytes = 0;  ///< static; dynamic shared memory is the launch's
  int64_t code_bytes = 0;
  int64_t param_bytes = 0;
  std::array<int64_t, 3> max_threads{};  ///< the launch bounds; zeros if there are none

  bool operator==(const KernelResources&) const = default;
};

struct CubinInfo {
  int64_t arch = 0;                      ///< 90 for sm_90 and sm_90a
  std::vector<KernelResources> kernels;  ///< in the order of their names

  bool operator==(const CubinInfo&) const = default;
};

/// Total: any bytes give an answer or an error. Errors: CubinMalformed.
Result<CubinInfo> read_cubin(std::string_view bytes);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CUDA_CUBIN_H_
