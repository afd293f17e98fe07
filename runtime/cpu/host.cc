#include "runtime/cpu/host.h"

#include "runtime/cpu/tiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/X86TargetParser.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <thread>

namespace prunerc::runtime {
namespace {

constexpr const char* kCacheFolder = "/sys/devices/system/cpu/cpu0/cache/index";

/// Extensions that change what kernels look like. Others follow from the CPU's name, less what of it
/// is hidden.
constexpr std::array kFeatures = {"avx",        "avx2",       "fma",      "f16c",       "avx512f",
                                  "avx512bw",   "avx512dq",   "avx512vl", "avx512vnni", "avxvnni",
                                  "avx512bf16", "avx512fp16", "amx-tile", "amx-int8",   "amx-bf16"};

/// Those of the others that kernels use (as codegen/cpu/features.cc has them) and that x86-64-v3 does
/// not have.
constexpr std::array kImplied = {
    "sse4a",       "xop",          "fma4",        "tbm",          "gfni",
    "avxifma",     "avxneconvert", "avxvnniint8", "avxvnniint16", "avx512cd",
    "avx512ifma",  "avx512vbmi",   "avx512vbmi2", "avx512bitalg", "avx512vpopcntdq",
    "avx10.1-256", "avx10.1-512",  "egpr"};

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

/// "1024K" in bytes; 0 if it is no size.
int64_t parse_size(const std::string& text) {
  char* end = nullptr;
  const int64_t value = std::strtoll(text.c_str(), &end, 10);
  if (value <= 0) return 0;
  if (*end == 'K') return value << 10;
  if (*end == 'M') return value << 20;
  return value;
}

int64_t count_cores(int64_t num_threads) {
  // Threads that share a core list the same siblings; counting the first of each list counts cores.
  int64_t cores = 0;
  for (int64_t cpu = 0; cpu < num_threads; ++cpu) {
    const std::string folder = "/sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/topology/";
    const std::string siblings = read_line(folder + "thread_siblings_list");
    if (siblings.empty()) return num_threads;
    if (std::strtoll(siblings.c_str(), nullptr, 10) == cpu) ++cores;
  }
  return std::max<int64_t>(cores, 1);
}

HostIsa find_host_isa() {
  HostIsa isa;
  isa.llvm_cpu = llvm::sys::getHostCPUName().str();
  const llvm::StringMap<bool> features = llvm::sys::getHostCPUFeatures();
  for (const char* name : kFeatures) {
    const auto found = features.find(name);
    if (found == features.end()) continue;
    // The CPU may have tile registers that the system does not let this process use.
    const bool is_tile = std::string_view(name).starts_with("amx-");
    const bool has = found->second && (!is_tile || allow_tiles());
    if (!isa.llvm_features.empty()) isa.llvm_features += ',';
    isa.llvm_features += (has ? "+" : "-") + std::string(name);
  }
  isa.llvm_features += hidden_features(isa.llvm_cpu, [&](std::string_view name) {
    const auto found = features.find(name);
    return found == features.end() || found->second;
  });
  const auto avx512 = features.find("avx512f");
  isa.has_avx512 = avx512 != features.end() && avx512->second;
  return isa;
}

}  // namespace

CacheSizes host_caches() {
  CacheSizes caches;
  for (int i = 0; i < 8; ++i) {
    const std::string folder = kCacheFolder + std::to_string(i) + "/";
    const std::string level = read_line(folder + "level");
    const int64_t bytes = parse_size(read_line(folder + "size"));
    if (level.empty()) break;
    if (bytes == 0 || read_line(folder + "type") == "Instruction") continue;
    if (level == "1") caches.l1d_bytes = bytes;
    if (level == "2") caches.l2_bytes = bytes;
    if (level == "3") caches.l3_bytes = bytes;
    const int64_t line = parse_size(read_line(folder + "coherency_line_size"));
    if (line > 0) caches.line_bytes = line;
  }
  return caches;
}

std::string hidden_features(std::string_view llvm_cpu,
                            const std::function<bool(std::string_view name)>& has) {
  if (llvm::X86::parseArchX86(llvm_cpu, /*Only64Bit=*/true) == llvm::X86::CK_None) return "";
  llvm::SmallVector<llvm::StringRef> implied;
  llvm::X86::getFeaturesForCPU(llvm_cpu, implied);
  std::string out;
  for (const std::string_view name : kImplied) {
    // "-avx512f" takes the rest along.
    const bool is_gone = name.starts_with("avx512") && !has("avx512f");
    if (!is_gone && !has(name) && llvm::is_contained(implied, llvm::StringRef(name)))
      out += ",-" + std::string(name);
  }
  return out;
}

HostIsa host_isa() {
  static const HostIsa isa = find_host_isa();
  return isa;
}

std::string host_model_name() {
  std::string model = "x86-64";
  std::ifstream cpuinfo("/proc/cpuinfo");
  for (std::string line; std::getline(cpuinfo, line);) {
    if (line.rfind("model name", 0) != 0) continue;
    const size_t colon = line.find(": ");
    if (colon != std::string::npos) model = line.substr(colon + 2);
    break;
  }
  return model + ", " + std::to_string(std::thread::hardware_concurrency()) + " threads";
}

std::string host_name() { return host_model_name() + " (" + host_isa().llvm_cpu + ")"; }

ir::Target host_target(std::string_view name) {
  const HostIsa isa = host_isa();
  // The table knows ports and latencies of some CPUs by LLVM's name; a newer one starts from the
  // general row.
  Result<ir::Target> known = ir::target_from_string("cpu:" + isa.llvm_cpu);
  if (!known.ok()) known = ir::target_from_string("cpu");
  ir::Target target = known.ok() ? *known : ir::Target{};
  const CacheSizes caches = host_caches();
  target.name = name;
  target.llvm_cpu = isa.llvm_cpu;
  target.llvm_features = isa.llvm_features;
  target.vector_bytes = isa.has_avx512 ? 64 : 32;
  target.num_vector_registers = isa.has_avx512 ? 32 : 16;
  target.l1d_bytes = caches.l1d_bytes;
  target.l2_bytes = caches.l2_bytes;
  target.l3_bytes = caches.l3_bytes;
  target.cache_line_bytes = caches.line_bytes;
  target.num_threads = std::max(1U, std::thread::hardware_concurrency());
  target.num_cores = count_cores(target.num_threads);
  target.platform = {};
  return target;
}

}  // namespace prunerc::runtime
