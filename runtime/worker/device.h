// Runs kernels in worker processes: whatever a kernel does is an outcome, and the next kernel is
// not affected.
#ifndef PRUNERC_RUNTIME_WORKER_DEVICE_H_
#define PRUNERC_RUNTIME_WORKER_DEVICE_H_

#include "runtime/device.h"

#include <memory>
#include <string>
#include <vector>

namespace prunerc::runtime {

class WorkerProcess;
struct RequestLimits;
struct TalkResult;

struct WorkerOptions {
  /// Threads that kernels run on, exactly.
  int num_threads = 1;
  /// Command that starts a worker; its main must call serve_if_asked.
  std::vector<std::string> worker_argv = {};
  /// Address space of a worker; 0 takes four fifths of the machine's memory. Units: bytes.
  int64_t memory_limit_bytes = 0;
  /// No single run may take longer; a job with a best known time gets ten times that plus a second.
  /// Units: ns.
  int64_t run_limit_ns = 10'000'000'000;
  /// The same for a job that is neither checked nor timed: a user's run or a reference, slow by
  /// right.
  int64_t unchecked_run_limit_ns = 120'000'000'000;
  /// For linking an object, and for filling inputs.
  int64_t load_limit_ns = 30'000'000'000;
  /// CPU time of one request on each of its threads: ends a worker whose parent is stopped and
  /// watches no clock. 0 takes what the limits above add up to.
  int64_t cpu_limit_ns = 0;
  /// No worker may write a file beyond this, outputs apart; a driver keeps caches. Units: bytes.
  int64_t file_limit_bytes = 1 << 20;
  /// Variables of the environment that its kernels' libraries read, as WorkerProcess::start takes
  /// them.
  std::vector<std::string> environment = {};
  /// A worker is replaced after so many jobs, or after so long: what earlier kernels left behind
  /// must not add up.
  int max_jobs_per_worker = 32;
  int64_t max_worker_age_ns = 60'000'000'000;
};

class WorkerDevice : public Device {
 public:
  explicit WorkerDevice(WorkerOptions options);
  ~WorkerDevice() override;

  JobOutcome run(const Job& job) override;
  std::vector<Measurement> compare(std::span<const Job> jobs, const TimingOptions& timing) override;

  /// Processes started so far.
  int64_t num_workers_started() const { return num_started_; }

 private:
  Measurement ensure_worker();
  /// One attempt; `died` tells a death of the process from an answer.
  JobOutcome attempt(const Job& job, bool* died);
  std::vector<Measurement> attempt_compare(std::span<const Job> jobs, const TimingOptions& timing,
                                           bool* died, size_t* culprit);
  int64_t limit_of(double best_known_ns) const;
  /// `wall_ns`: what the stages of the request may take; `written`: end of its outputs.
  RequestLimits request_limits(int64_t wall_ns, int64_t written) const;

  WorkerOptions options_;
  std::unique_ptr<WorkerProcess> worker_;
  int jobs_of_worker_ = 0;
  int64_t num_started_ = 0;
};

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_WORKER_DEVICE_H_
