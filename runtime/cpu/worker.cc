#include "runtime/cpu/worker.h"

#include "runtime/cpu/runner.h"
#include "runtime/cpu/serve.h"

#include <string_view>

namespace prunerc::runtime {

int worker_main(int in_fd, int out_fd, int exchange_fd) {
  return serve_jobs({.in = in_fd, .out = out_fd, .exchange = exchange_fd}, FatalSignals::kReport,
                    [](const ConfigureMessage& configure, int exchange, StatusPage* status) {
                      return std::make_unique<Runner>(configure, exchange, status);
                    });
}

std::optional<int> dispatch_worker(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != kWorkerArgument) return std::nullopt;
  return worker_main(kWorkerInFd, kWorkerOutFd, kWorkerExchangeFd);
}

}  // namespace prunerc::runtime
