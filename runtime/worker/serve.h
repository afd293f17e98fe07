// The loop of a worker process: requests from a pipe, answers to another, whatever runs the jobs.
#ifndef PRUNERC_RUNTIME_WORKER_SERVE_H_
#define PRUNERC_RUNTIME_WORKER_SERVE_H_

#include "runtime/worker/job_runner.h"
#include "runtime/worker/sandbox.h"

#include <functional>
#include <memory>
#include <optional>
#include <string_view>

namespace prunerc::runtime {

/// `exchange_fd` holds tensors given as bytes and receives outputs; the stage goes to the page.
using MakeRunner = std::function<std::unique_ptr<JobRunner>(const ConfigureMessage&,
                                                            int exchange_fd, StatusPage*)>;

enum class FatalSignals : uint8_t {
  kReport,  ///< one line in the status page, then death
  kLeave,   ///< to a sanitizer, which knows more
};

/// To be called first in main: if the first argument is `argument`, serves requests until the
/// parent closes its pipe, and returns the exit status if it cannot begin; else returns nothing.
/// The process ends at once when the parent dies, even if a kernel is running. It confines itself
/// before the first job.
std::optional<int> serve_if_asked(int argc, char** argv, std::string_view argument,
                                  FatalSignals signals, Sandbox sandbox,
                                  const MakeRunner& make_runner);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_WORKER_SERVE_H_
