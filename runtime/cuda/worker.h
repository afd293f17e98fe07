// The process that owns a GPU's context.
#ifndef PRUNERC_RUNTIME_CUDA_WORKER_H_
#define PRUNERC_RUNTIME_CUDA_WORKER_H_

#include <optional>

namespace prunerc::runtime::cuda {

inline constexpr const char* kCudaWorkerArgument = "__cuda_worker";

/// To be called first in main of every executable that uses a GPU, as dispatch_worker: serves jobs
/// and returns the exit status if the arguments say so, else nothing.
std::optional<int> dispatch_cuda_worker(int argc, char** argv);

}  // namespace prunerc::runtime::cuda

#endif  // PRUNERC_RUNTIME_CUDA_WORKER_H_
