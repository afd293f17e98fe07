// The loop of a worker process: requests from a pipe, answers to another, whatever runs the jobs.
#ifndef PRUNERC_RUNTIME_CPU_SERVE_H_
#define PRUNERC_RUNTIME_CPU_SERVE_H_

#include "runtime/cpu/message.h"

#include <functional>
#include <memory>
#include <vector>

namespace prunerc::runtime {

/// What executes jobs inside of a worker.
class JobRunner {
 public:
  virtual ~JobRunner() = default;
  /// Calls `on_progress` before each step that may take long, with its stage.
  virtual Measurement run(const JobMessage& job, const std::function<void(Stage)>& on_progress) = 0;
  virtual std::vector<Measurement> compare(const CompareMessage& message,
                                           const std::function<void(Stage)>& on_progress) = 0;
};

/// `exchange_fd` holds tensors given as bytes and receives outputs; the stage goes to the page.
using MakeRunner = std::function<std::unique_ptr<JobRunner>(const ConfigureMessage&,
                                                            int exchange_fd, StatusPage*)>;

/// The worker's ends.
struct WorkerEnds {
  int in = -1;
  int out = -1;
  int exchange = -1;
};

enum class FatalSignals : uint8_t {
  kReport,  ///< one line in the status page, then death
  kLeave,   ///< to a sanitizer, which knows more
};

/// Serves requests until `in` is closed; returns only if it cannot begin. The process ends at once
/// when the parent dies, even if a kernel is running.
int serve_jobs(const WorkerEnds& fds, FatalSignals signals, const MakeRunner& make_runner);

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_CPU_SERVE_H_
