#include "runtime/cuda/worker.h"

#include "runtime/cuda/runner.h"
#include "runtime/worker/serve.h"

namespace prunerc::runtime::cuda {

std::optional<int> dispatch_cuda_worker(int argc, char** argv) {
  return serve_if_asked(argc, argv, kCudaWorkerArgument, FatalSignals::kReport, Sandbox::kDevice,
                        [](const ConfigureMessage&, int exchange_fd, StatusPage* status) {
                          return std::make_unique<CudaRunner>(exchange_fd, status);
                        });
}

}  // namespace prunerc::runtime::cuda
