#include "runtime/cuda_host/worker.h"

#include "runtime/cuda_host/annotate.h"
#include "runtime/cuda_host/runner.h"
#include "runtime/worker/serve.h"

namespace prunerc::runtime::cuda_host {

std::optional<int> dispatch_host_worker(int argc, char** argv) {
  const FatalSignals signals =
      kChecker == Checker::kNone ? FatalSignals::kReport : FatalSignals::kLeave;
  return serve_if_asked(argc, argv, kHostWorkerArgument, signals,
                        [](const ConfigureMessage& configure, int exchange_fd, StatusPage* status) {
                          return std::make_unique<HostRunner>(configure, exchange_fd, status);
                        });
}

}  // namespace prunerc::runtime::cuda_host
