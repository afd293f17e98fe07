#include "runtime/cpu/worker.h"

#include "runtime/cpu/runner.h"
#include "runtime/worker/serve.h"

namespace prunerc::runtime {

std::optional<int> dispatch_worker(int argc, char** argv) {
  return serve_if_asked(argc, argv, kWorkerArgument, FatalSignals::kReport, Sandbox::kCompute,
                        [](const ConfigureMessage& configure, int exchange, StatusPage* status) {
                          return std::make_unique<Runner>(configure, exchange, status);
                        });
}

}  // namespace prunerc::runtime
