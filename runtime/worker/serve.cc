#include "runtime/worker/serve.h"

#include "runtime/worker/fault.h"
#include "runtime/worker/frame.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace prunerc::runtime {
namespace {

constexpr int kExitProtocol = 3;

/// Ends the process when the parent is gone. PR_SET_PDEATHSIG would fire as soon as the *thread*
/// that started us ends.
void die_with_parent(int in_fd) {
  std::thread([in_fd] {
    pollfd wait{.fd = in_fd, .events = 0, .revents = 0};  // hang-ups are always reported
    while (true) {
      if (poll(&wait, 1, -1) > 0 && (wait.revents & (POLLHUP | POLLERR | POLLNVAL)) != 0) _exit(0);
    }
  }).detach();
}

StatusPage* map_status(int exchange_fd) {
  void* at = mmap(nullptr, kExchangeDataOffset, PROT_READ | PROT_WRITE, MAP_SHARED, exchange_fd, 0);
  return at == MAP_FAILED ? nullptr : static_cast<StatusPage*>(at);
}

class Server {
 public:
  Server(Sandbox sandbox, StatusPage* status, const MakeRunner& make_runner)
      : sandbox_(sandbox), status_(status), make_runner_(make_runner) {}

  /// False if the parent asks for what cannot be: then there is nothing to talk about.
  bool serve(const Frame& request) {
    request_ = request.request;
    if (request.type == FrameType::kConfigure) return configure(request.payload);
    if (runner_ == nullptr) return false;
    const auto progress = [this](Stage stage) {
      const auto number = static_cast<uint32_t>(stage);
      send(FrameType::kProgress, {reinterpret_cast<const char*>(&number), sizeof number});
    };
    if (request.type == FrameType::kRun) {
      const std::optional<JobMessage> job = decode_job(request.payload);
      return job &&
             send(FrameType::kDone, encode(std::vector<Measurement>{runner_->run(*job, progress)}));
    }
    if (request.type == FrameType::kCompare) {
      const std::optional<CompareMessage> jobs = decode_compare(request.payload);
      return jobs && send(FrameType::kDone, encode(runner_->compare(*jobs, progress)));
    }
    return false;
  }

 private:
  bool configure(std::string_view payload) {
    const std::optional<ConfigureMessage> message = decode_configure(payload);
    if (!message || runner_ != nullptr) return false;
    // Before the threads of the runner, which inherit it; the filter after what they need.
    confine_process(sandbox_, message->memory_limit_bytes);
    runner_ = make_runner_(*message, kWorkerExchangeFd, status_);
    filter_system_calls(sandbox_);
    return send(FrameType::kReady, {});
  }

  bool send(FrameType type, std::string_view payload) {
    return write_all(
        kWorkerOutFd,
        encode(Frame{.type = type, .payload = std::string(payload), .request = request_}));
  }

  Sandbox sandbox_;
  StatusPage* status_;
  const MakeRunner& make_runner_;
  uint32_t request_ = 0;
  std::unique_ptr<JobRunner> runner_;
};

int serve(FatalSignals signals, Sandbox sandbox, const MakeRunner& make_runner) {
  StatusPage* const status = map_status(kWorkerExchangeFd);
  if (status == nullptr) return kExitProtocol;
  if (signals == FatalSignals::kReport)
    install_fault_handlers(status->detail, sizeof status->detail);
  die_with_parent(kWorkerInFd);
  Server server(sandbox, status, make_runner);
  FrameParser parser;
  Frame request;
  while (read_frame(kWorkerInFd, parser, -1, &request) == ReadStatus::kFrame) {
    if (!server.serve(request)) _exit(kExitProtocol);
  }
  // Not by returning: destructors of what kernels may have overwritten must not run.
  _exit(0);
}

}  // namespace

std::optional<int> serve_if_asked(int argc, char** argv, std::string_view argument,
                                  FatalSignals signals, Sandbox sandbox,
                                  const MakeRunner& make_runner) {
  if (argc < 2 || argv[1] != argument) return std::nullopt;
  return serve(signals, sandbox, make_runner);
}

}  // namespace prunerc::runtime
