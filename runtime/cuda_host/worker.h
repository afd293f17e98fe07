// The process that kernels compiled for the host run in.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_WORKER_H_
#define PRUNERC_RUNTIME_CUDA_HOST_WORKER_H_

#include <optional>

namespace prunerc::runtime::cuda_host {

inline constexpr const char* kHostWorkerArgument = "__cuda_host_worker";

/// To be called first in main of every executable that runs kernels on the host, as
/// dispatch_worker: serves jobs and returns the exit status if the arguments say so, else nothing.
std::optional<int> dispatch_host_worker(int argc, char** argv);

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_WORKER_H_
