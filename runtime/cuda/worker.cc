#include "runtime/cuda/worker.h"

#include "runtime/cpu/serve.h"
#include "runtime/cpu/worker.h"
#include "runtime/cuda/runner.h"

#include <string_view>

namespace prunerc::runtime::cuda {

std::optional<int> dispatch_cuda_worker(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != kCudaWorkerArgument) return std::nullopt;
  return serve_jobs({.in = kWorkerInFd, .out = kWorkerOutFd, .exchange = kWorkerExchangeFd},
                    FatalSignals::kReport,
                    [](const ConfigureMessage&, int exchange_fd, StatusPage* status) {
                      return std::make_unique<CudaRunner>(exchange_fd, status);
                    });
}

}  // namespace prunerc::runtime::cuda
