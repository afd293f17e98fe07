#include "runtime/cuda_host/worker.h"

#include "runtime/cuda_host/annotate.h"
#include "runtime/cuda_host/runner.h"
#include "runtime/worker/serve.h"

namespace prunerc::runtime::cuda_host {

std::optional<int> dispatch_host_worker(int argc, char** argv) {
  const bool checked = kChecker != Checker::kNone;
  return serve_if_asked(argc, argv, kHostWorkerArgument,
                        checked ? FatalSignals::kLeave : FatalSignals::kReport,
                        checked ? Sandbox::kSanitizer : Sandbox::kDevice,
                        [](const ConfigureMessage& configure, int exchange_fd, StatusPage* status) {
                          return std::make_unique<HostRunner>(configure, exchange_fd, status);
                        });
}

}  // namespace prunerc::runtime::cuda_host
