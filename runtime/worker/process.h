// A worker process as its parent sees it: start, talk with deadlines, find out how it died.
#ifndef PRUNERC_RUNTIME_WORKER_PROCESS_H_
#define PRUNERC_RUNTIME_WORKER_PROCESS_H_

#include "ir/support/result.h"
#include "runtime/worker/frame.h"
#include "runtime/worker/message.h"

#include <sys/types.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace prunerc::runtime {

/// How a conversation with a worker ended.
enum class TalkStatus : uint8_t { kAnswered, kDied, kTimeout, kGarbage };

struct TalkResult {
  TalkStatus status = TalkStatus::kDied;
  std::string payload;   ///< of the final frame, if answered
  std::string detail;    ///< how it died, for people
  uint32_t job_idx = 0;  ///< the job of a comparison that was in flight
};

/// What a request may use up before the system ends the worker, whatever the parent does.
struct RequestLimits {
  int64_t file_bytes = 0;  ///< end of the furthest write to any file, shared memory included
  int64_t cpu_ns = 0;      ///< of all its threads
};

/// One worker. Destruction kills it.
class WorkerProcess {
 public:
  /// Starts `argv` (argv[0] is the file to run) and waits until it has been configured. Of the
  /// environment it gets what loaders and sanitizers read, debugging options, and the variables in
  /// `keep`; a name that ends in '*' stands for all that begin so.
  /// Errors: WorkerStart.
  static Result<std::unique_ptr<WorkerProcess>> start(const std::vector<std::string>& argv,
                                                      const std::vector<std::string>& keep,
                                                      const ConfigureMessage& configure,
                                                      int64_t deadline_ns);
  ~WorkerProcess();
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  /// Sends a request and waits for its last frame; `stage_limit_ns` says how long each stage may
  /// last. After anything but kAnswered the process is dead.
  TalkResult talk(const Frame& request, const RequestLimits& limits,
                  const std::function<int64_t(Stage)>& stage_limit_ns);

  /// Moves tensors through the shared file; false if it cannot hold or does not have so many bytes.
  bool write_exchange(std::string_view bytes, int64_t offset);
  bool read_exchange(int64_t offset, int64_t num_bytes, std::string* bytes) const;

  int64_t started_ns() const { return started_ns_; }
  pid_t pid() const { return pid_; }

 private:
  WorkerProcess() : owner_(getpid()) {}
  /// Kills and reaps it; describes how it had ended if it was dead before.
  std::string finish();
  std::string read_log() const;
  void arm(const RequestLimits& limits) const;

  const pid_t owner_;  // the process that started it
  pid_t pid_ = -1;
  int to_worker_ = -1;
  int from_worker_ = -1;
  int exchange_ = -1;
  int log_ = -1;
  StatusPage* status_ = nullptr;
  int64_t started_ns_ = 0;
  uint32_t num_requests_ = 0;
  FrameParser parser_;
};

}  // namespace prunerc::runtime

#endif  // PRUNERC_RUNTIME_WORKER_PROCESS_H_
