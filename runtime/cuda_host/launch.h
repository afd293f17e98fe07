// Runs the blocks of one launch.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_LAUNCH_H_
#define PRUNERC_RUNTIME_CUDA_HOST_LAUNCH_H_

#include "runtime/cuda_host/abi.h"
#include "runtime/cuda_host/options.h"

#include <array>
#include <cstdint>
#include <string>

namespace prunerc::runtime::cuda_host {

struct Grid {
  std::array<int64_t, 3> blocks{1, 1, 1};
  std::array<int64_t, 3> threads{1, 1, 1};
  int64_t shared_bytes = 0;
  int64_t cluster = 1;  ///< blocks along x that run together
};

/// What kernels call; goes to the `attach` symbol of their shared object.
const PrHostApi& host_api();

/// Runs all blocks, in options.order, on options.num_threads host threads; empty, or what went
/// wrong in the first block that failed.
std::string launch(const Grid& grid, PrHostKernel kernel, void** args,
                   const ExecutionOptions& options);

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_LAUNCH_H_
