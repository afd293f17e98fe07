#include "tools/driver/platform.h"

#include "codegen/codegen.h"
#include "codegen/cpu/features.h"
#include "codegen/host_compiler.h"
#include "ir/support/file.h"
#include "ir/support/hash.h"
#include "runtime/cpu/cpus.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/limits.h"
#include "runtime/cuda/driver.h"
#include "tools/driver/gpu_platform.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace prunerc {
namespace {

// The features that code for the target can use and this CPU lacks.
Result<void> check_features(const ir::Target& target) {
  if (target.llvm_cpu.empty()) return {};
  static const Result<std::vector<std::string>> host = codegen::cpu_features(ir::Target{});
  const Result<std::vector<std::string>> asked = codegen::cpu_features(target);
  // What cannot be compiled for is said when it is compiled for.
  if (!asked.ok() || !host.ok()) return {};
  std::vector<std::string_view> missing;
  // Tile registers are a need of kernels that name them: who loads one asks for them.
  for (const codegen::CpuFeature& feature : codegen::needed_features(*asked)) {
    if (std::find(host->begin(), host->end(), feature.name) == host->end())
      missing.push_back(feature.name);
  }
  if (!missing.empty())
    return error(Diag::kCpuFeatures, fmt::format("{}", fmt::join(missing, ", ")));
  if (target.vector_bytes > runtime::host_target().vector_bytes)
    return error(Diag::kTargetNotHost, target.name);
  return {};
}

int hardware_threads() { return runtime::usable_cpus(); }

// "" for the widest registers, or if there is no place to write.
std::string platform_file(int64_t vector_bytes) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  const std::string width = vector_bytes == 0 ? "" : fmt::format("-{}", vector_bytes);
  return fmt::format("{}/platform-{:016x}{}.txt", folder, hash_bytes(runtime::host_model_name()),
                     width);
}

ir::Platform rates_now(int vector_bytes) {
  constexpr int64_t kSampleNs = 1'000'000;
  ir::Platform now;
  now.clock_ghz = runtime::measure_clock_ghz(kSampleNs);
  now.fma_gflops = runtime::measure_fma_gflops(1, kSampleNs, vector_bytes);
  now.fma_gflops_all = runtime::measure_fma_gflops(hardware_threads(), kSampleNs, vector_bytes);
  return now;
}

// 0 for the widest registers.
int64_t width_of(int64_t vector_bytes) {
  return vector_bytes >= runtime::host_target().vector_bytes ? 0 : vector_bytes;
}

std::optional<HostLimits> read_limits(const std::string& path) {
  const Result<std::string> text =
      path.empty() ? Result<std::string>(std::string()) : read_file(path);
  return text.ok() ? host_limits_from_string(*text) : std::nullopt;
}

// Caches, cores and what a core does at once are the machine's, registers the instruction set's.
ir::Target on_this_machine(const ir::Target& set) {
  ir::Target t = runtime::host_target(set.name);
  t.llvm_cpu = set.llvm_cpu;
  t.llvm_features = set.llvm_features;
  t.num_vector_registers = set.num_vector_registers;
  // znver4's one port of 64 bytes is two of 32.
  const bool halves = t.vector_bytes == 64 && set.vector_bytes < 64 && t.fma_ports == 1;
  if (halves) t.fma_ports = t.load_ports = 2;
  if (set.vector_bytes == 16) t.fma_latency_cycles = set.fma_latency_cycles;
  t.vector_bytes = set.vector_bytes;
  return t;
}

// The device at hand is what "cuda" means, and what its architecture's name means; words behind
// the name override what it is and reaches. Another name is the table's.
Result<ir::Target> gpu_target(std::string_view text) {
  const std::size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view name = text.substr(0, end);
  const bool is_own = name == "cuda";
  if (!is_own) {
    const Result<ir::Target> table = ir::target_from_string(text);
    const bool is_device = table.ok() && table->name != name;  // "cuda:a100"
    if (!table.ok() || is_device || !runtime::cuda::driver().ok()) return table;
  }
  const Result<GpuPlatform> gpu = gpu_platform();
  if (!gpu.ok()) return is_own ? Result<ir::Target>(gpu.error()) : ir::target_from_string(text);
  if (!is_own && gpu->target.name != name) return ir::target_from_string(text);
  return ir::target_from_string(ir::to_string(gpu->target) + std::string(text.substr(end)));
}

}  // namespace

std::string cache_folder() {
  const char* const xdg = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  std::string base = xdg != nullptr && *xdg != '\0'     ? xdg
                     : home != nullptr && *home != '\0' ? std::string(home) + "/.cache"
                                                        : "";
  if (base.empty()) return "";
  base += "/prunerc";
  std::error_code code;
  std::filesystem::create_directories(std::filesystem::path(base).parent_path(), code);
  // Its own: who else could write there would choose the code that runs here.
  if (::mkdir(base.c_str(), 0700) == 0) return base;
  return std::filesystem::is_directory(base, code) ? base : "";
}

std::string to_string(const HostLimits& limits) {
  ir::Target carrier = *ir::target_from_string("cpu");
  carrier.platform = limits.best;
  std::string text = ir::to_string(carrier) + '\n';
  carrier.platform = limits.spread;
  return text + ir::to_string(carrier) + '\n';
}

std::optional<HostLimits> host_limits_from_string(std::string_view text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  const Result<ir::Target> best = ir::target_from_string(text.substr(0, end));
  if (!best.ok() || best->platform.fma_gflops <= 0) return std::nullopt;
  text.remove_prefix(std::min(end + 1, text.size()));
  const Result<ir::Target> spread = ir::target_from_string(text);
  return HostLimits{best->platform, spread.ok() ? spread->platform : ir::Platform{}};
}

KeptLimits judge_kept(const ir::Platform& kept, const ir::Platform& now) {
  // Below a sample's own noise; the clock of a busy machine moves by a few steps of its boost.
  constexpr double kDrift = 1.05;
  constexpr double kClockDrift = 1.1;
  if (now.clock_ghz > kClockDrift * kept.clock_ghz || now.clock_ghz * kClockDrift < kept.clock_ghz)
    return KeptLimits::kOtherClock;
  const bool exceeded = now.fma_gflops > kDrift * kept.fma_gflops ||
                        now.fma_gflops_all > kDrift * kept.fma_gflops_all;
  return exceeded ? KeptLimits::kExceeded : KeptLimits::kCurrent;
}

HostLimits larger_of(const HostLimits& a, const HostLimits& b) {
  HostLimits most = a;
  for (double ir::Platform::*field :
       {&ir::Platform::clock_ghz, &ir::Platform::fma_gflops, &ir::Platform::fma_gflops_all,
        &ir::Platform::l1_bandwidth, &ir::Platform::l2_bandwidth, &ir::Platform::l3_bandwidth,
        &ir::Platform::memory_bandwidth, &ir::Platform::l2_bandwidth_all,
        &ir::Platform::l3_bandwidth_all, &ir::Platform::memory_bandwidth_all}) {
    if (b.best.*field <= a.best.*field) continue;
    most.best.*field = b.best.*field;
    most.spread.*field = b.spread.*field;
  }
  return most;
}

HostLimits host_limits(int64_t vector_bytes) {
  const int64_t width = width_of(vector_bytes);
  const std::optional<HostLimits> kept = read_limits(platform_file(width));
  if (!kept) return measure_host(width);
  switch (judge_kept(kept->best, rates_now(static_cast<int>(width)))) {
    case KeptLimits::kCurrent: return *kept;
    case KeptLimits::kExceeded: return measure_host(width, kept);
    case KeptLimits::kOtherClock: return measure_host(width);
  }
  PRUNERC_UNREACHABLE("kept limits");
}

HostLimits measure_host(int64_t vector_bytes, const std::optional<HostLimits>& kept) {
  const int64_t width = width_of(vector_bytes);
  runtime::LimitsOptions options;
  options.vector_bytes = static_cast<int>(width);
  const runtime::MachineLimits measured = runtime::measure_limits(options);
  HostLimits limits = {runtime::to_platform(measured), runtime::to_spreads(measured)};
  if (kept) limits = larger_of(limits, *kept);
  const std::string path = platform_file(width);
  // A folder that cannot be written to costs the next process two seconds, and nothing else.
  if (!path.empty()) static_cast<void>(replace_file(path, to_string(limits)));
  return limits;
}

Result<void> check_threads_here(int64_t threads) {
  const int most = hardware_threads();
  if (threads <= most) return {};
  return error(Diag::kUsageOption, std::string("--threads"),
               fmt::format("this process may use {} CPU{} of this machine, found {} threads", most,
                           most == 1 ? "" : "s", threads));
}

bool is_host_measured() { return read_limits(platform_file(width_of(0))).has_value(); }

Result<ir::Target> resolve_target(std::string_view text, int threads, Limits limits) {
  const bool measured = limits == Limits::kMeasured;
  const bool host = text == "cpu";
  if (host) PRUNERC_TRY_VOID(check_threads_here(threads));
  ir::Target target;
  if (host) {
    target = runtime::host_target();
    if (measured) target.platform = host_limits().best;
  } else {
    PRUNERC_TRY(target, text == "cuda" || text.starts_with("cuda ") || text.starts_with("cuda:")
                            ? gpu_target(text)
                            : ir::target_from_string(text));
    if (target.kind == ir::TargetKind::kCpu && runs_here(target)) {
      if (text.starts_with("cpu:x86-64-v") && text.find(' ') == std::string_view::npos) {
        target = on_this_machine(target);
      }
      if (measured) target.platform = host_limits(target.vector_bytes).best;
    }
  }
  if (target.kind == ir::TargetKind::kCpu) {
    const int wanted = threads > 0 ? threads : hardware_threads();
    target.num_threads = wanted;
    target.num_cores = std::clamp<int64_t>(target.num_cores, 1, wanted);
  }
  return target;
}

Result<void> check_runs_here(const ir::Target& target) {
  switch (target.kind) {
    case ir::TargetKind::kCpu: return check_features(target);
    case ir::TargetKind::kCuda:
      if (runtime::cuda::driver().ok()) return {};
      break;
    case ir::TargetKind::kCudaHost:
      if (codegen::find_host_compiler().ok()) return {};
      break;
  }
  return error(Diag::kTargetNotHost, target.name);
}

bool runs_here(const ir::Target& target) { return check_runs_here(target).ok(); }

}  // namespace prunerc
