// What runs the jobs of a worker process: an interface, and the steps that are alike for every kind
// of kernel.
#ifndef PRUNERC_RUNTIME_WORKER_JOB_RUNNER_H_
#define PRUNERC_RUNTIME_WORKER_JOB_RUNNER_H_

#include "runtime/worker/message.h"

#include <functional>
#include <vector>

namespace prunerc::runtime {

/// Called before each step that may take long.
using OnProgress = std::function<void(Stage)>;

class JobRunner {
 public:
  /// `exchange_fd` holds tensors given as bytes and receives outputs; the stage goes to the page.
  JobRunner(int exchange_fd, StatusPage* status) : exchange_fd_(exchange_fd), status_(status) {}
  virtual ~JobRunner() = default;

  /// Loads, checks and times one kernel.
  virtual Measurement run(const JobMessage& job, const OnProgress& on_progress) = 0;
  /// Loads all kernels, then times those that loaded in turn.
  virtual std::vector<Measurement> compare(const CompareMessage& message,
                                           const OnProgress& on_progress) = 0;

 protected:
  void enter(Stage stage, const OnProgress& on_progress);
  /// Leaves the last stage; nobody waits for it.
  void leave();
  /// Says which job of a comparison is in flight.
  void enter_job(size_t job_idx);
  /// False if the bytes are not in the exchange file.
  bool fill_input(const InputMessage& input, const codegen::ArtifactParam& param,
                  unsigned char* to) const;
  /// Writes one output at `*offset` and moves it on.
  Measurement write_output(const unsigned char* data, int64_t bytes, int64_t* offset) const;

 private:
  int exchange_fd_;
  StatusPage* status_;
};

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_WORKER_JOB_RUNNER_H_
