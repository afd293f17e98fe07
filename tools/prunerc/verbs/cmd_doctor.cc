#include "codegen/codegen.h"
#include "codegen/cuda/nvrtc.h"
#include "codegen/host_compiler.h"
#include "runtime/cpu/device.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/limits.h"
#include "runtime/cuda/cupti_timer.h"
#include "runtime/cuda/driver.h"
#include "runtime/worker/sandbox.h"
#include "tools/driver/platform.h"
#include "tools/driver/reference.h"
#include "tools/prunerc/baseline.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/display.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>

namespace prunerc::cli {
namespace {

enum class State : uint8_t { kOk, kWarning, kFailed };

// One line of the report. Failed lines and warnings have a fix.
struct Check {
  State state = State::kOk;
  std::string name;
  std::string found;
  std::string fix;
};

Check check_cpu() {
  if (const char* missing = missing_instructions()) {
    return {State::kFailed, "cpu", fmt::format("{} lacks {}", runtime::host_model_name(), missing),
            "prunerc needs a CPU of x86-64-v3 (Intel Haswell, AMD Zen or newer)"};
  }
  return {State::kOk, "cpu", runtime::host_model_name() + ", x86-64-v3 or better", ""};
}

Check check_cache() {
  const std::string folder = cache_folder();
  const std::string probe = fmt::format("{}/probe.{}", folder, ::getpid());
  const bool written = !folder.empty() && static_cast<bool>(std::ofstream(probe) << "x");
  std::error_code code;
  std::filesystem::remove(probe, code);
  if (written) return {State::kOk, "cache folder", folder, ""};
  return {State::kFailed, "cache folder", folder.empty() ? "none" : folder + " is not writable",
          "set XDG_CACHE_HOME to a folder that you may write to"};
}

Check check_database(const std::string& chosen) {
  const std::string path = chosen.empty() ? default_database() : chosen;
  Result<search::Database> database = search::Database::open(path);
  const std::string fix = "move the file away, or name another one with --db or PRUNERC_DB";
  if (!database.ok()) return {State::kFailed, "database", database.error().message(), fix};
  const Result<search::DatabaseStats> stats = database->stats();
  if (!stats.ok()) return {State::kFailed, "database", stats.error().message(), fix};
  if (stats->num_damaged > 0) {
    return {State::kWarning, "database",
            fmt::format("{}: {} damaged records are skipped", path, stats->num_damaged),
            "`prunerc db validate` lists them; export and import into a new file drops them"};
  }
  return {State::kOk, "database", fmt::format("{}, {} records", path, stats->num_records), ""};
}

constexpr const char* kTrivial = "op doctor(A: f32[4096]) -> (B: f32[4096]) { B[i] = A[i] + 1; }";

// Compiles a trivial operator and times it in a worker process.
Check check_kernel() {
  OperatorRequest request;
  request.text = kTrivial;
  const Result<Operator> op = load_operator(request);
  if (!op.ok())
    return {State::kFailed, "compiler", op.error().message(), "this is a defect; please report it"};
  const Result<ir::Target> target = resolve_target("cpu", 1);
  if (!target.ok()) return {State::kFailed, "compiler", target.error().message(), ""};
  const Result<codegen::Artifact> artifact = codegen::compile_cpu(op->program, *target, {});
  if (!artifact.ok()) {
    return {State::kFailed, "compiler", artifact.error().message(),
            "this CPU may be too new for LLVM 19; try --target cpu:haswell"};
  }
  runtime::CpuDevice device;
  runtime::Job job;
  job.artifact = &*artifact;
  job.inputs = References::inputs(op->program, 1);
  job.timing.emplace();
  const runtime::Measurement m = device.run(job).measurement;
  if (m.ok()) {
    return {
        State::kOk, "kernel",
        fmt::format("compiled for {}, ran in a worker, {}", artifact->cpu, time_text(m.median_ns)),
        ""};
  }
  return {State::kFailed, "kernel", fmt::format("{}: {}", describe(m.status), m.detail),
          "a worker is this program started again: allow it to start processes (ulimit -u), shared "
          "memory files and half of the memory"};
}

// What keeps candidates from harm, besides being in a process of their own.
Check check_sandbox() {
  const std::string layers = runtime::describe_sandbox();
  if (layers.find("filter") != std::string::npos) return {State::kOk, "sandbox", layers, ""};
  return {State::kWarning, "sandbox", layers + "; candidates run with your rights",
          "a container may forbid seccomp: allow it, or tune only what you trust"};
}

Check check_c_compiler() {
  const Result<std::string> compiler = codegen::find_c_compiler();
  if (compiler.ok()) return {State::kOk, "C compiler", *compiler, ""};
  return {State::kWarning, "C compiler",
          compiler.error().message() + "; `compile -o x.so` will fail, -o x.s works",
          "apt-get install gcc, or name one in PRUNERC_CXX"};
}

Check check_host_compiler() {
  const Result<std::string> compiler = codegen::find_host_compiler();
  if (compiler.ok()) return {State::kOk, "C++ compiler", *compiler, ""};
  return {State::kWarning, "C++ compiler",
          compiler.error().message() + "; kernels of GPUs cannot be run on this CPU",
          "apt-get install g++, or name one in PRUNERC_CXX"};
}

Check check_nvrtc() {
  const Result<codegen::NvrtcInfo> nvrtc = codegen::nvrtc_info();
  if (nvrtc.ok())
    return {State::kOk, "nvrtc", fmt::format("{}.{}, {}", nvrtc->major, nvrtc->minor, nvrtc->path),
            ""};
  return {State::kWarning, "nvrtc", nvrtc.error().message(),
          "`./dev setup --cuda` installs it for this user; PRUNERC_NVRTC names a library"};
}

Check check_cupti() {
  const Result<std::string> cupti = runtime::cuda::find_cupti();
  if (cupti.ok()) return {State::kOk, "cupti", *cupti, ""};
  return {State::kWarning, "cupti", "not found; CUDA events will time kernels",
          "`./dev setup --cuda` installs it for this user; PRUNERC_CUPTI names a library"};
}

// A machine without a GPU is no mistake: kernels for one can be compiled and tested here.
Check check_gpu() {
  const Result<const runtime::cuda::Driver*> driver = runtime::cuda::driver();
  if (!driver.ok()) return {State::kOk, "gpu", driver.error().message(), ""};
  char name[128] = {};
  int device = 0;
  (*driver)->cuDeviceGet(&device, 0);
  (*driver)->cuDeviceGetName(name, sizeof name - 1, device);
  int known = 0;
  (*driver)->cuDriverGetVersion(&known);
  const Result<codegen::NvrtcInfo> nvrtc = codegen::nvrtc_info();
  const Result<void> loads =
      runtime::cuda::check_toolkit(known, nvrtc.ok() ? 1000 * nvrtc->major : 0);
  if (!loads.ok()) return {State::kWarning, "gpu", std::string(name), loads.error().message()};
  return {State::kOk, "gpu", name, ""};
}

// The same work twice a millisecond: how much its time varies tells how far timings can be trusted.
Check check_noise() {
  std::vector<double> times;
  for (int i = 0; i < 200; ++i) {
    times.push_back(runtime::canary_ns());
    ::usleep(500);
  }
  std::sort(times.begin(), times.end());
  const double median = times[times.size() / 2];
  const double high = times[times.size() * 9 / 10];
  const double spread = high / std::max(1.0, median) - 1;
  const std::string found = fmt::format(
      "the slowest tenth of equal work takes {:.0f}% longer than the median", 100 * spread);
  if (spread < 0.1) return {State::kOk, "noise", found, ""};
  return {State::kWarning, "noise", found,
          "stop other work, or tune with fewer --threads than the machine has"};
}

int doctor(const std::string& database) {
  bool failed = false;
  const auto show = [&](const Check& check) {
    const char* const word = check.state == State::kOk        ? "ok"
                             : check.state == State::kWarning ? "warning"
                                                              : "failed";
    fmt::print("{:<8} {:<13} {}\n", word, check.name, check.found);
    if (check.state != State::kOk && !check.fix.empty())
      fmt::print("{:<8} fix: {}\n", "", check.fix);
    failed |= check.state == State::kFailed;
  };
  show(check_cpu());
  show(check_cache());
  show(check_database(database));
  show(check_kernel());
  show(check_sandbox());
  show(check_c_compiler());
  show(check_host_compiler());
  show(check_nvrtc());
  show(check_cupti());
  show(check_gpu());
  show(check_noise());
  return failed ? kDeviceProblem : kSuccess;
}

}  // namespace

void add_doctor(CLI::App& verb, Action& action) {
  auto database = std::make_shared<std::string>();
  add_database_to(verb, database.get());
  verb.callback([database, &action] { action = [database] { return doctor(*database); }; });
}

}  // namespace prunerc::cli
