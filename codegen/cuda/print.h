// Lowered programs as CUDA C++ over the wrapper functions of the preludes: one text for NVRTC and
// for the host.
#ifndef PRUNERC_CODEGEN_CUDA_PRINT_H_
#define PRUNERC_CODEGEN_CUDA_PRINT_H_

#include "codegen/artifact.h"
#include "codegen/gpu_storage.h"
#include "codegen/lower/analysis/kernel.h"
#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::codegen {

/// A tensor map of a buffer; its base is filled in by who knows where buffers are.
struct KernelMap {
  ir::BufferId from;
  TensorMap map;

  bool operator==(const KernelMap&) const = default;
};

/// One __global__ function and how it is launched.
struct KernelText {
  std::string name;
  Dim3 blocks, threads;
  int64_t shared_bytes = 0;
  int64_t cluster = 1;             ///< blocks along x that run together
  std::vector<ir::BufferId> args;  ///< in the order of its parameters
  std::vector<KernelMap> maps;     ///< parameters behind those
};

struct CudaText {
  std::string text;  ///< without a prelude
  std::vector<KernelText> kernels;
  GpuStorage storage;
};

/// Names of the program and its buffers do not reach the text. Deterministic.
/// Errors: ThreadKernel; GpuLimit (threads, shared memory); Unsupported (shapes that are not
/// constant); SwizzleForm; BulkForm; TensorTarget.
Result<CudaText> print_cuda(const ir::Program& lowered, const ir::Target& target,
                            std::string_view symbol);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_CUDA_PRINT_H_
