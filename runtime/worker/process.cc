#include "runtime/worker/process.h"

#include "runtime/clock.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <string_view>

extern char** environ;

namespace prunerc::runtime {
namespace {

/// Descriptors are moved above those that a worker expects, so that placing one there cannot close
/// another.
constexpr int kFirstFreeFd = 10;
/// A process that was killed is gone after this long, unless the kernel cannot end it.
constexpr int64_t kReapLimitNs = 5'000'000'000;
/// The report of a sanitizer fits.
constexpr int64_t kMaxLogBytes = 8000;
/// No request has so many stages; each frame restarts the clock, so their number bounds the time.
constexpr int kMaxFrames = 1000;

/// For what a worker's libraries print.
constexpr int64_t kLeastFileBytes = 1 << 20;
/// A day; more is no limit, and sums of limits must not overflow.
constexpr int64_t kMostCpuNs = int64_t{86400} * 1'000'000'000;

int move_up(int fd) {
  if (fd < 0) return fd;
  const int moved = fcntl(fd, F_DUPFD_CLOEXEC, kFirstFreeFd);
  close(fd);
  return moved;
}

void close_fd(int* fd) {
  if (*fd >= 0) close(*fd);
  *fd = -1;
}

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  return {.read_end = move_up(ends[0]), .write_end = move_up(ends[1])};
}

/// What loaders, sanitizers and coverage read, and our debugging options.
constexpr std::string_view kKeptVariables[] = {
    "LD_LIBRARY_PATH", "LLVM_PROFILE_FILE", "ASAN_OPTIONS", "LSAN_OPTIONS",
    "TSAN_OPTIONS",    "UBSAN_OPTIONS",     "PRUNERC_*"};

/// True if `pattern` is the name of the variable, or its beginning followed by '*'.
bool names(std::string_view pattern, std::string_view entry) {
  if (pattern.ends_with('*')) return entry.starts_with(pattern.substr(0, pattern.size() - 1));
  return entry.substr(0, entry.find('=')) == pattern;
}

/// The environment of a worker: what it needs of the parent's, since the rest may hold secrets, and
/// the mark that makes a second generation impossible.
std::vector<char*> worker_environment(const std::vector<std::string>& keep, std::string* mark) {
  *mark = std::string(kWorkerVariable) + "=1";
  std::vector<char*> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const auto is_this = [&](std::string_view pattern) { return names(pattern, *entry); };
    if (std::any_of(std::begin(kKeptVariables), std::end(kKeptVariables), is_this) ||
        std::any_of(keep.begin(), keep.end(), is_this)) {
      result.push_back(*entry);
    }
  }
  result.push_back(mark->data());
  result.push_back(nullptr);
  return result;
}

struct WorkerFds {
  int in, out, exchange, log;
};

/// 0 or an errno.
int spawn(const std::vector<std::string>& argv, const std::vector<std::string>& keep,
          const WorkerFds& fds, pid_t* pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, fds.log, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fds.log, STDERR_FILENO);
  posix_spawn_file_actions_adddup2(&actions, fds.in, kWorkerInFd);
  posix_spawn_file_actions_adddup2(&actions, fds.out, kWorkerOutFd);
  posix_spawn_file_actions_adddup2(&actions, fds.exchange, kWorkerExchangeFd);
  posix_spawn_file_actions_addclosefrom_np(&actions, kWorkerExchangeFd + 1);

  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  // A group of its own: Ctrl-C in the terminal is for the parent, and a kill reaches what a kernel
  // may have started.
  posix_spawnattr_setpgroup(&attributes, 0);
  sigset_t none;
  sigemptyset(&none);
  sigset_t defaults;
  sigemptyset(&defaults);
  for (const int signal : {SIGPIPE, SIGXFSZ, SIGINT, SIGTERM, SIGSEGV, SIGFPE, SIGILL, SIGBUS})
    sigaddset(&defaults, signal);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes,
                           POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);

  std::vector<std::string> words = argv;
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string mark;
  const std::vector<char*> environment = worker_environment(keep, &mark);
  const int failure =
      posix_spawn(pid, arguments[0], &actions, &attributes, arguments.data(), environment.data());
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failure;
}

std::string describe_exit(int wait_status) {
  if (WIFSIGNALED(wait_status)) {
    const int signal = WTERMSIG(wait_status);
    const char* name = sigabbrev_np(signal);
    return name != nullptr ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
  }
  return "the process exited with status " + std::to_string(WEXITSTATUS(wait_status));
}

/// A write to a dead worker, or of more than a limit on files allows, must be an error, not the end of
/// the parent.
void ignore_signals_of_writes() {
  for (const int number : {SIGPIPE, SIGXFSZ}) {
    struct sigaction current {};
    if (sigaction(number, nullptr, &current) == 0 && current.sa_handler == SIG_DFL)
      signal(number, SIG_IGN);
  }
}

}  // namespace

Result<std::unique_ptr<WorkerProcess>> WorkerProcess::start(const std::vector<std::string>& argv,
                                                            const std::vector<std::string>& keep,
                                                            const ConfigureMessage& configure,
                                                            int64_t deadline_ns) {
  const auto refuse = [](std::string why) { return error(Diag::kWorkerStart, std::move(why)); };
  if (getenv(kWorkerVariable) != nullptr) return refuse("this process is a worker itself");
  ignore_signals_of_writes();
  std::unique_ptr<WorkerProcess> worker(new WorkerProcess);
  Pipe requests = make_pipe();
  Pipe answers = make_pipe();
  worker->to_worker_ = requests.write_end;
  fcntl(worker->to_worker_, F_SETFL, O_NONBLOCK);
  worker->from_worker_ = answers.read_end;
  worker->exchange_ = move_up(memfd_create("prunerc-exchange", MFD_CLOEXEC));
  worker->log_ = move_up(memfd_create("prunerc-log", MFD_CLOEXEC));
  const bool has_files = worker->exchange_ >= 0 && worker->log_ >= 0 && requests.read_end >= 0 &&
                         answers.read_end >= 0 &&
                         ftruncate(worker->exchange_, kExchangeDataOffset) == 0;
  int failure = has_files ? 0 : errno;
  if (has_files) {
    void* at = mmap(nullptr, kExchangeDataOffset, PROT_READ | PROT_WRITE, MAP_SHARED,
                    worker->exchange_, 0);
    if (at != MAP_FAILED) worker->status_ = static_cast<StatusPage*>(at);
    failure = at == MAP_FAILED ? errno
                               : spawn(argv, keep,
                                       {.in = requests.read_end,
                                        .out = answers.write_end,
                                        .exchange = worker->exchange_,
                                        .log = worker->log_},
                                       &worker->pid_);
  }
  close_fd(&requests.read_end);
  close_fd(&answers.write_end);
  if (failure != 0) {
    worker->pid_ = -1;
    return refuse(std::strerror(failure));
  }
  worker->started_ns_ = now_ns();
  Frame answer;
  const Frame hello{.type = FrameType::kConfigure, .payload = encode(configure)};
  const bool ready = write_all(worker->to_worker_, encode(hello)) &&
                     read_frame(worker->from_worker_, worker->parser_, deadline_ns, &answer) ==
                         ReadStatus::kFrame &&
                     answer.type == FrameType::kReady;
  if (ready) return worker;
  return refuse(argv[0] +
                " does not answer as a worker (its main must call dispatch_worker first): " +
                worker->finish());
}

WorkerProcess::~WorkerProcess() {
  close_fd(&to_worker_);  // an idle worker leaves by itself
  finish();
  if (status_ != nullptr) munmap(status_, kExchangeDataOffset);
  close_fd(&from_worker_);
  close_fd(&exchange_);
  close_fd(&log_);
}

std::string WorkerProcess::read_log() const {
  std::string text(kMaxLogBytes, '\0');
  const off_t size = lseek(log_, 0, SEEK_END);
  const ssize_t got =
      pread(log_, text.data(), text.size(), std::max<off_t>(0, size - kMaxLogBytes));
  text.resize(got > 0 ? static_cast<size_t>(got) : 0);
  // Candidates do not print, but what they corrupt may: nothing of it may reach a terminal as
  // control codes.
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < ' ' && c != '\n') c = '?';
  }
  return text;
}

std::string WorkerProcess::finish() {
  // In the child of a fork the worker is its parent's.
  if (pid_ <= 0 || getpid() != owner_) return "";
  int wait_status = 0;
  bool reaped = false, is_known = false;
  const auto reap = [&] {
    const pid_t got = waitpid(pid_, &wait_status, WNOHANG);
    is_known = got == pid_;
    // Where a process ignores SIGCHLD its children are reaped by the system.
    reaped = is_known || (got < 0 && errno == ECHILD);
    if (!reaped) usleep(200);
  };
  // A pipe that has closed means a process that is about to be reaped: give it a moment to say how
  // it died.
  const int64_t grace_ns = now_ns() + 20'000'000;
  while (!reaped && parser_.is_broken() == false && now_ns() < grace_ns) reap();
  kill(-pid_, SIGKILL);
  const int64_t deadline_ns = now_ns() + kReapLimitNs;
  std::string how = is_known ? describe_exit(wait_status) : reaped ? "ended" : "killed";
  while (!reaped && now_ns() < deadline_ns) reap();
  if (!reaped) how = "process " + std::to_string(pid_) + " cannot be killed";
  pid_ = -1;
  // The handler's text starts with the signal's name and knows more.
  std::array<char, sizeof(StatusPage::detail)> detail;
  std::memcpy(detail.data(), status_->detail, detail.size());
  detail.back() = '\0';
  if (detail[0] != '\0') how = detail.data();
  const std::string log = read_log();
  return log.empty() ? how : how + "\n" + log;
}

void WorkerProcess::arm(const RequestLimits& limits) const {
  // Soft limits only, from outside: the worker's filter lets it change none.
  const auto set = [this](__rlimit_resource what, int64_t value) {
    rlimit both{};
    if (prlimit(pid_, what, nullptr, &both) != 0) return;
    both.rlim_cur = std::min(static_cast<rlim_t>(value), both.rlim_max);
    prlimit(pid_, what, &both, nullptr);
  };
  set(RLIMIT_FSIZE, std::max(limits.file_bytes, kLeastFileBytes));
  clockid_t clock = 0;
  timespec used{};
  if (clock_getcpuclockid(pid_, &clock) != 0 || clock_gettime(clock, &used) != 0) return;
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t seconds = std::min(limits.cpu_ns, kMostCpuNs) / kSecond;
  set(RLIMIT_CPU, used.tv_sec + 1 + std::max<int64_t>(1, seconds));
}

TalkResult WorkerProcess::talk(const Frame& request, const RequestLimits& limits,
                               const std::function<int64_t(Stage)>& stage_limit_ns) {
  TalkResult result;
  const auto end_as = [&](TalkStatus status, std::string why) {
    result.status = status;
    result.job_idx = __atomic_load_n(&status_->job_idx, __ATOMIC_ACQUIRE);
    const auto stage = static_cast<Stage>(__atomic_load_n(&status_->stage, __ATOMIC_ACQUIRE));
    const std::string how = finish();
    result.detail =
        (status == TalkStatus::kDied ? how : why) + " while " + std::string(to_string(stage));
    return result;
  };
  if (pid_ <= 0) return result;
  arm(limits);
  __atomic_store_n(&status_->job_idx, 0U, __ATOMIC_RELEASE);
  Frame numbered = request;
  numbered.request = ++num_requests_;
  int64_t limit_ns = stage_limit_ns(Stage::kIdle);
  const auto no_answer = [&] {
    return end_as(TalkStatus::kTimeout,
                  "no answer within " + std::to_string(limit_ns / 1'000'000) + " ms");
  };
  // A worker that a kernel has spoiled may not read.
  switch (write_until(to_worker_, encode(numbered), now_ns() + limit_ns)) {
    case WriteStatus::kClosed: return end_as(TalkStatus::kDied, "");
    case WriteStatus::kDeadline: return no_answer();
    case WriteStatus::kWritten: break;
  }
  for (int num_frames = 0;; ++num_frames) {
    Frame frame;
    switch (read_frame(from_worker_, parser_, now_ns() + limit_ns, &frame)) {
      case ReadStatus::kEnd: return end_as(TalkStatus::kDied, "");
      case ReadStatus::kBroken: return end_as(TalkStatus::kGarbage, "the process sent garbage");
      case ReadStatus::kDeadline: return no_answer();
      case ReadStatus::kFrame: break;
    }
    if (frame.request != num_requests_) {
      return end_as(TalkStatus::kGarbage, "the process answered an earlier request again");
    }
    if (frame.type == FrameType::kDone) {
      result.status = TalkStatus::kAnswered;
      result.payload = std::move(frame.payload);
      return result;
    }
    uint32_t stage = 0;
    if (frame.type != FrameType::kProgress || frame.payload.size() != sizeof stage ||
        num_frames > kMaxFrames) {
      return end_as(TalkStatus::kGarbage, "the process sent an unexpected message");
    }
    std::memcpy(&stage, frame.payload.data(), sizeof stage);
    limit_ns = stage_limit_ns(static_cast<Stage>(stage));
  }
}

bool WorkerProcess::write_exchange(std::string_view bytes, int64_t offset) {
  return write_all_at(exchange_, reinterpret_cast<const unsigned char*>(bytes.data()),
                      static_cast<int64_t>(bytes.size()), offset);
}

bool WorkerProcess::read_exchange(int64_t offset, int64_t num_bytes, std::string* bytes) const {
  bytes->resize(static_cast<size_t>(num_bytes));
  return read_all_at(exchange_, reinterpret_cast<unsigned char*>(bytes->data()), num_bytes, offset);
}

}  // namespace prunerc::runtime
