#include "runtime/worker/serve.h"

#include "runtime/worker/fault.h"
#include "runtime/worker/frame.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <string_view>
#include <thread>

namespace prunerc::runtime {
namespace {

constexpr rlim_t kMaxOpenFiles = 256;
constexpr int kExitProtocol = 3;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kHasShadowMemory = true;  // sanitizers reserve terabytes of addresses
#else
constexpr bool kHasShadowMemory = false;
#endif

void limit(__rlimit_resource_t what, rlim_t value) {
  const rlimit both{.rlim_cur = value, .rlim_max = value};
  setrlimit(what, &both);  // best effort: a lower limit may already be in force
}

void confine(const ConfigureMessage& configure) {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, kMaxOpenFiles);
  if (configure.memory_limit_bytes > 0 && !kHasShadowMemory) {
    limit(RLIMIT_AS, static_cast<rlim_t>(configure.memory_limit_bytes));
  }
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
}

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
  Server(int out_fd, int exchange_fd, StatusPage* status, const MakeRunner& make_runner)
      : out_fd_(out_fd), exchange_fd_(exchange_fd), status_(status), make_runner_(make_runner) {}

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
    confine(*message);
    runner_ = make_runner_(*message, exchange_fd_, status_);
    return send(FrameType::kReady, {});
  }

  bool send(FrameType type, std::string_view payload) {
    return write_all(
        out_fd_, encode(Frame{.type = type, .payload = std::string(payload), .request = request_}));
  }

  int out_fd_;
  int exchange_fd_;
  StatusPage* status_;
  const MakeRunner& make_runner_;
  uint32_t request_ = 0;
  std::unique_ptr<JobRunner> runner_;
};

int serve(FatalSignals signals, const MakeRunner& make_runner) {
  StatusPage* const status = map_status(kWorkerExchangeFd);
  if (status == nullptr) return kExitProtocol;
  if (signals == FatalSignals::kReport)
    install_fault_handlers(status->detail, sizeof status->detail);
  die_with_parent(kWorkerInFd);
  Server server(kWorkerOutFd, kWorkerExchangeFd, status, make_runner);
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
                                  FatalSignals signals, const MakeRunner& make_runner) {
  if (argc < 2 || argv[1] != argument) return std::nullopt;
  return serve(signals, make_runner);
}

}  // namespace prunerc::runtime
