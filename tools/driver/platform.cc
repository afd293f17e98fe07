#include "tools/driver/platform.h"

#include "codegen/cuda/host_compiler.h"
#include "ir/support/hash.h"
#include "runtime/cpu/host.h"
#include "runtime/cpu/limits.h"
#include "runtime/cuda/driver.h"
#include "tools/driver/gpu_platform.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

namespace prunerc {
namespace {

int hardware_threads() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// "" for the widest registers, or if there is no place to write.
std::string platform_file(int64_t vector_bytes) {
  const std::string folder = cache_folder();
  if (folder.empty()) return "";
  const std::string width = vector_bytes == 0 ? "" : fmt::format("-{}", vector_bytes);
  return fmt::format("{}/platform-{:016x}{}.txt", folder, hash_bytes(runtime::host_model_name()),
                     width);
}

// The kept limits are a target's text: what target_from_string reads back.
bool read_platform(const std::string& path, ir::Platform* platform) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || text.view().empty()) return false;
  const Result<ir::Target> target = ir::target_from_string(text.str());
  if (!target.ok() || target->platform.fma_gflops <= 0) return false;
  *platform = target->platform;
  return true;
}

void write_platform(const std::string& path, const ir::Platform& platform) {
  ir::Target carrier = *ir::target_from_string("cpu");
  carrier.platform = platform;
  const std::string temporary = fmt::format("{}.{}", path, ::getpid());
  std::ofstream(temporary) << ir::to_string(carrier) << '\n';
  std::error_code code;
  std::filesystem::rename(temporary, path, code);
}

// Limits kept from a time when other work had a part of the machine are too low: what is faster now
// tells.
bool is_outdated(const ir::Platform& kept, int vector_bytes) {
  constexpr int64_t kSampleNs = 1'000'000;
  constexpr double kDrift = 1.05;
  const auto exceeds = [&](int num_threads, double limit) {
    return runtime::measure_fma_gflops(num_threads, kSampleNs, vector_bytes) > kDrift * limit;
  };
  return exceeds(1, kept.fma_gflops) || exceeds(hardware_threads(), kept.fma_gflops_all);
}

ir::Platform larger_of(const ir::Platform& a, const ir::Platform& b) {
  ir::Platform most = a;
  for (double ir::Platform::*field :
       {&ir::Platform::clock_ghz, &ir::Platform::fma_gflops, &ir::Platform::fma_gflops_all,
        &ir::Platform::l1_bandwidth, &ir::Platform::l2_bandwidth, &ir::Platform::l3_bandwidth,
        &ir::Platform::memory_bandwidth, &ir::Platform::l2_bandwidth_all,
        &ir::Platform::l3_bandwidth_all, &ir::Platform::memory_bandwidth_all}) {
    most.*field = std::max(a.*field, b.*field);
  }
  return most;
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
  std::filesystem::create_directories(base, code);
  return code ? "" : base;
}

ir::Platform host_platform(bool remeasure, int64_t vector_bytes) {
  if (vector_bytes >= runtime::host_target().vector_bytes) vector_bytes = 0;
  const std::string path = platform_file(vector_bytes);
  const int width = static_cast<int>(vector_bytes);
  ir::Platform kept;
  const bool has_kept = !remeasure && !path.empty() && read_platform(path, &kept);
  if (has_kept && !is_outdated(kept, width)) return kept;
  runtime::LimitsOptions options;
  options.vector_bytes = width;
  ir::Platform platform = runtime::to_platform(runtime::measure_limits(options));
  if (has_kept) platform = larger_of(platform, kept);
  if (!path.empty()) write_platform(path, platform);
  return platform;
}

bool is_host_measured() {
  ir::Platform kept;
  const std::string path = platform_file(0);
  return !path.empty() && read_platform(path, &kept);
}

Result<ir::Target> resolve_target(std::string_view text, int threads) {
  const bool host = text == "cpu";
  ir::Target target;
  if (host) {
    target = runtime::host_target();
    target.platform = host_platform();
  } else {
    PRUNERC_TRY(target, text == "cuda" || text.starts_with("cuda ") || text.starts_with("cuda:")
                            ? gpu_target(text)
                            : ir::target_from_string(text));
    if (target.kind == ir::TargetKind::kCpu && runs_here(target)) {
      if (text.starts_with("cpu:x86-64-v") && text.find(' ') == std::string_view::npos) {
        target = on_this_machine(target);
      }
      target.platform = host_platform(false, target.vector_bytes);
    }
  }
  if (target.kind == ir::TargetKind::kCpu) {
    const int wanted = threads > 0 ? threads : hardware_threads();
    target.num_threads = wanted;
    target.num_cores = std::clamp<int64_t>(target.num_cores, 1, wanted);
  }
  return target;
}

bool runs_here(const ir::Target& target) {
  switch (target.kind) {
    case ir::TargetKind::kCpu: return target.vector_bytes <= runtime::host_target().vector_bytes;
    case ir::TargetKind::kCuda: return runtime::cuda::driver().ok();
    case ir::TargetKind::kCudaHost: return codegen::find_host_compiler().ok();
  }
  PRUNERC_UNREACHABLE("target kind");
}

}  // namespace prunerc
