#include "runtime/worker/sandbox.h"

#include "runtime/clock.h"
#include "runtime/worker/process.h"
#include "tests/runtime/kernels.h"

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

namespace prunerc::runtime {
namespace {

/// Sanitizers open files and start programs, so their workers may; a container may allow no filter.
bool has_filter() {
  return !has_sanitizer() && describe_sandbox().find("system call filter") != std::string::npos;
}

bool works(CpuDevice& device) {
  const codegen::Artifact artifact = test_artifact("good");
  return device.run(test_job(artifact)).measurement.ok();
}

/// What `body` returns in a process of its own that confined itself before; -1 if it died.
int confined(Sandbox sandbox, const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    confine_process(sandbox, 0);
    filter_system_calls(sandbox);
    _exit(body());
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_CASE("a kernel that asks the system for more than computing needs is stopped and blamed") {
  if (!has_filter()) return;
  CpuDevice device(test_options(2));
  const std::pair<const char*, const char*> refused[] = {
      {"opens_a_socket", "SIGSYS: system call 41 (socket) is refused"},
      {"reads_a_file", "SIGSYS: system call 2 (open) is refused"},
      {"forks", "SIGSYS: system call 57 (fork) is refused"},
      {"starts_a_program", "SIGSYS: system call 59 (execve) is refused"},
      {"kills_its_parent", "SIGSYS: system call 62 (kill) is refused"},
      {"raises_its_limits", "SIGSYS: system call 160 (setrlimit) is refused"},
      {"moves_its_thread_pointer", "SIGSYS: system call 158 (arch_prctl) is refused"},
      {"closes_the_pipe", "SIGSYS: system call 3 (close) is refused"},
      {"writes_a_gibibyte", "SIGXFSZ: a write beyond the largest file"},
  };
  for (const auto& [entry, detail] : refused) {
    const codegen::Artifact artifact = test_artifact(entry);
    const Measurement result = device.run(test_job(artifact)).measurement;
    INFO(entry << ": " << to_string(result.status) << ": " << result.detail);
    CHECK(result.status == MeasureStatus::kCrash);
    CHECK(result.detail.find(detail) != std::string::npos);
    CHECK(works(device));
  }
}

TEST_CASE("the filter holds on the threads of the pool as well") {
  if (!has_filter()) return;
  CpuDevice device(test_options(2));
  const codegen::Artifact artifact = test_artifact("reads_a_file_in_a_worker");
  Measurement result;
  // The second worker gets a task in most runs only.
  for (int i = 0; i < 50 && result.status != MeasureStatus::kCrash; ++i)
    result = device.run(test_job(artifact)).measurement;
  INFO(result.detail);
  CHECK(result.detail.find("(open) is refused") != std::string::npos);
}

TEST_CASE("a kernel that burns CPU time dies of it even if no one watches the clock") {
  WorkerOptions options = test_options(2);
  options.run_limit_ns = 60'000'000'000;
  options.cpu_limit_ns = 500'000'000;
  CpuDevice device(options);
  const codegen::Artifact artifact = test_artifact("hangs");
  const int64_t started_ns = now_ns();
  const Measurement result = device.run(test_job(artifact)).measurement;
  INFO(result.detail);
  CHECK(result.status == MeasureStatus::kCrash);
  CHECK(result.detail.find("SIGXCPU") != std::string::npos);
  CHECK(now_ns() - started_ns < 30'000'000'000);
  CHECK(works(device));
}

TEST_CASE("outputs larger than any file that a kernel may write still arrive") {
  CpuDevice device(test_options());
  codegen::Artifact artifact = test_artifact("good");
  // The kernel writes the first thousand; a single run does not ask for the rest.
  artifact.params[1].shape = {1000, 1000};
  Job job = test_job(artifact);
  job.check = Check::kNone;
  job.want_outputs = true;
  const JobOutcome outcome = device.run(job);
  INFO(outcome.measurement.detail);
  REQUIRE(outcome.measurement.ok());
  CHECK(outcome.outputs[0].size() == 4'000'000);
}

TEST_CASE("a worker gets what it needs of the environment and no more") {
  setenv("SECRET_OF_THE_USER", "hunter2", 1);
  setenv("CUDA_VISIBLE_DEVICES", "7", 1);
  const auto environment = [](const std::vector<std::string>& keep) {
    const auto started = WorkerProcess::start({"/bin/sh", "-c", "env; sleep 0.2"}, keep,
                                              ConfigureMessage{}, now_ns() + 5'000'000'000);
    return started.ok() ? "a worker" : started.error().message();
  };
  const std::string usual = environment({});
  INFO(usual);
  CHECK(usual.find(std::string(kWorkerVariable) + "=1") != std::string::npos);
  CHECK(usual.find("hunter2") == std::string::npos);
  CHECK(usual.find("CUDA_VISIBLE_DEVICES") == std::string::npos);
  CHECK(environment({"CUDA_*"}).find("CUDA_VISIBLE_DEVICES=7") != std::string::npos);
  unsetenv("SECRET_OF_THE_USER");
  unsetenv("CUDA_VISIBLE_DEVICES");
}

TEST_CASE("a worker of a device keeps files and threads, and has no network and no programs") {
  if (!has_filter()) return;
  CHECK(confined(Sandbox::kDevice, [] { return open("/etc/passwd", O_RDONLY) < 0 ? 1 : 0; }) == 0);
  CHECK(confined(Sandbox::kDevice, [] {
          int answer = 1;
          std::thread([&answer] { answer = 0; }).join();
          return answer;
        }) == 0);
  const auto refuses = [](auto call) {
    return confined(Sandbox::kDevice, [call] { return call() < 0 ? errno : 0; }) == EPERM;
  };
  CHECK(refuses([] { return socket(AF_INET, SOCK_STREAM, 0); }));
  CHECK(refuses([] { return socket(AF_INET6, SOCK_DGRAM, 0); }));
  CHECK(refuses([] { return socket(AF_NETLINK, SOCK_RAW, 0); }));
  CHECK(refuses([] { return kill(getppid(), 0); }));
  CHECK(refuses([] { return static_cast<int>(fork()); }));
  CHECK(refuses([] { return execl("/bin/true", "true", nullptr); }));
}

TEST_CASE("a worker of the CPU opens no file even without the filter") {
  if (has_sanitizer() || describe_sandbox().find("Landlock") == std::string::npos) return;
  const pid_t child = fork();
  if (child == 0) {
    confine_process(Sandbox::kCompute, 0);
    _exit(open("/etc/passwd", O_RDONLY) < 0 ? errno : 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == EACCES);
}

}  // namespace
}  // namespace prunerc::runtime
