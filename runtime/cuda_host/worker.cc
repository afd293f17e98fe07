#include "runtime/cuda_host/worker.h"

#include "runtime/cpu/serve.h"
#include "runtime/cpu/worker.h"
#include "runtime/cuda_host/annotate.h"
#include "runtime/cuda_host/runner.h"

#include <string_view>

namespace prunerc::runtime::cuda_host {

std::optional<int> dispatch_host_worker(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != kHostWorkerArgument) return std::nullopt;
  const FatalSignals signals =
      kChecker == Checker::kNone ? FatalSignals::kReport : FatalSignals::kLeave;
  return serve_jobs({.in = kWorkerInFd, .out = kWorkerOutFd, .exchange = kWorkerExchangeFd},
                    signals,
                    [](const ConfigureMessage& configure, int exchange_fd, StatusPage* status) {
                      return std::make_unique<HostRunner>(configure, exchange_fd, status);
                    });
}

}  // namespace prunerc::runtime::cuda_host
