#include "ir/target.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <optional>

namespace prunerc::ir {
namespace {

constexpr int64_t kKiB = 1024;
constexpr int64_t kMiB = 1024 * kKiB;

struct CpuRow {
  const char* name;
  int64_t vector_bytes, num_vector_registers, fma_ports, fma_latency_cycles, load_ports;
  int64_t l1d_bytes, l2_bytes, l3_bytes, num_cores;
  double clock_ghz;  // sustained with wide vectors
};

// Vendors' optimization manuals; x86-64-vN are instruction sets that many machines run (-v2: SSE4
// without fused multiply-adds: a product, then a sum). znver4 starts a 512-bit multiply-add on both
// pipes together, hence one port.
// clang-format off: a table
constexpr CpuRow kCpus[] = {
    {"x86-64-v3", 32, 16, 2, 5, 2, 32 * kKiB, 256 * kKiB, 8 * kMiB, 4, 3.0},
    {"x86-64-v2", 16, 16, 1, 8, 2, 32 * kKiB, 256 * kKiB, 8 * kMiB, 4, 3.0},
    {"x86-64-v4", 64, 32, 2, 4, 2, 32 * kKiB, 1 * kMiB, 22 * kMiB, 16, 2.4},
    {"haswell", 32, 16, 2, 5, 2, 32 * kKiB, 256 * kKiB, 8 * kMiB, 4, 3.0},
    {"skylake-avx512", 64, 32, 2, 4, 2, 32 * kKiB, 1 * kMiB, 22 * kMiB, 16, 2.4},
    {"icelake-server", 64, 32, 2, 4, 2, 48 * kKiB, 1280 * kKiB, 48 * kMiB, 32, 2.6},
    {"znver3", 32, 16, 2, 4, 2, 32 * kKiB, 512 * kKiB, 32 * kMiB, 8, 3.4},
    {"znver4", 64, 32, 1, 4, 1, 32 * kKiB, 1 * kMiB, 32 * kMiB, 8, 3.7},
    {"sapphirerapids", 64, 32, 2, 4, 2, 48 * kKiB, 2 * kMiB, 105 * kMiB, 56, 2.6},
};

/// Instruction sets for products of narrow operands; what LLVM implies by the same names.
struct CpuFeatures {
  const char* name;
  const char* features;
};
constexpr CpuFeatures kCpuFeatures[] = {
    {"x86-64-v3", "avx2"},
    {"x86-64-v4", "avx2 avx512bw"},
    {"haswell", "avx2"},
    {"skylake-avx512", "avx2 avx512bw"},
    {"icelake-server", "avx2 avx512bw avx512vnni"},
    {"znver3", "avx2"},
    {"znver4", "avx2 avx512bw avx512vnni avx512bf16"},
    {"sapphirerapids", "avx2 avx512bw avx512vnni avx512bf16 avxvnni amx-tile amx-int8 amx-bf16"},
};

struct GpuRow {
  const char* name;
  int64_t compute_capability, num_sms, max_threads_per_sm, max_blocks_per_sm;
  int64_t smem_bytes_per_block, smem_bytes_per_sm;
  int64_t fma_lanes_per_sm, load_lanes_per_sm, tensor_macs_per_sm, l2_bytes;
  double clock_ghz, memory_gbytes;
};

/// A device as sold: what differs from a row of the table above it.
struct DeviceRow {
  const char* name;
  const char* base;       // of kGpus
  const char* overrides;  // words that target_from_string reads
};

// CUDA C++ Programming Guide, table of compute capabilities; counts of the usual data-centre part
// of each generation. Units for loads, and dense tensor rates: NVIDIA's architecture whitepapers
// (V100, Turing, A100, GA102, Ada, H100).
constexpr GpuRow kGpus[] = {
    {"sm_70", 70, 80, 2048, 32, 96 * kKiB, 96 * kKiB, 64, 32, 512, 6 * kMiB, 1.38, 900},
    {"sm_75", 75, 40, 1024, 16, 64 * kKiB, 64 * kKiB, 64, 16, 512, 4 * kMiB, 1.59, 320},
    {"sm_80", 80, 108, 2048, 32, 163 * kKiB, 164 * kKiB, 64, 32, 1024, 40 * kMiB, 1.41, 1555},
    {"sm_86", 86, 84, 1536, 16, 99 * kKiB, 100 * kKiB, 128, 16, 512, 6 * kMiB, 1.74, 696},
    {"sm_89", 89, 142, 1536, 24, 99 * kKiB, 100 * kKiB, 128, 16, 512, 96 * kMiB, 2.52, 864},
    {"sm_90", 90, 132, 2048, 32, 227 * kKiB, 228 * kKiB, 128, 32, 2048, 50 * kMiB, 1.83, 3350},
    {"sm_90a", 90, 132, 2048, 32, 227 * kKiB, 228 * kKiB, 128, 32, 2048, 50 * kMiB, 1.83, 3350},
};

// Data sheets of the devices; clocks are boost clocks, so that lanes times clock is the advertised
// f32 rate. The published Pruner's table (costmodel/pruner/device.cc) has other numbers for two of
// them: its K80 is the board of two dies, of which a CUDA device is one; its Orin is no module that
// is sold.
constexpr DeviceRow kDevices[] = {
    // NVIDIA Tesla K80 (board specification), one GK210: 13 SMX of 192 lanes at 875 MHz, 240 GB/s.
    // No code is generated for its architecture.
    {"k80", "sm_70",
     "compute_capability=37 num_sms=13 max_blocks_per_sm=16 registers_per_sm=131072 "
     "smem_bytes_per_block=49152 smem_bytes_per_sm=114688 fma_lanes_per_sm=192 "
     "tensor_macs_per_sm=0 l2_bytes=1572864 clock_ghz=0.875 memory_bandwidth=2.4e11 "
     "memory_bandwidth_all=2.4e11"},
    // NVIDIA T4 (data sheet 2019): 2560 cores, 8.1 TFLOP/s, 320 GB/s. Turing's shared memory: 64 bytes
    // per cycle and multiprocessor (GA102 whitepaper), half of the others'.
    {"t4", "sm_75", "l1_bandwidth=4.07e12"},
    // NVIDIA Titan V (product page): 5120 cores at 1455 MHz, 652.8 GB/s, 4.5 MB of L2.
    {"titanv", "sm_70",
     "l2_bytes=4718592 clock_ghz=1.455 memory_bandwidth=6.528e11 memory_bandwidth_all=6.528e11"},
    // NVIDIA A100 (data sheet 2021): 19.5 TFLOP/s; 40 GB at 1555 GB/s, 80 GB (PCIe) at 1935 GB/s.
    {"a100-40", "sm_80", ""},
    {"a100", "sm_80", "memory_bandwidth=1.935e12 memory_bandwidth_all=1.935e12"},
    // NVIDIA Turing whitepaper (2018), appendix: TU102 of 68 SMs at 1545 MHz (reference), 616 GB/s,
    // 5.5 MB of L2; TITAN RTX (product page): 72 SMs at 1770 MHz, 672 GB/s, 6 MB.
    {"rtx2080ti", "sm_75",
     "num_sms=68 l2_bytes=5767168 clock_ghz=1.545 l1_bandwidth=6.723e12 memory_bandwidth=6.16e11 "
     "memory_bandwidth_all=6.16e11"},
    {"titan-rtx", "sm_75",
     "num_sms=72 l2_bytes=6291456 clock_ghz=1.77 l1_bandwidth=8.156e12 memory_bandwidth=6.72e11 "
     "memory_bandwidth_all=6.72e11"},
    // NVIDIA GA102 whitepaper (2021): GeForce RTX 3090: 82 SMs at 1695 MHz, 936 GB/s, 6 MB of L2; RTX
    // A6000 (data sheet): 84 SMs, 38.7 TFLOP/s, 768 GB/s; RTX A4000 (data sheet): 48 SMs,
    // 19.2 TFLOP/s, 448 GB/s, 4 MB.
    {"rtx3090", "sm_86",
     "num_sms=82 clock_ghz=1.695 memory_bandwidth=9.36e11 memory_bandwidth_all=9.36e11"},
    {"a6000", "sm_86", "clock_ghz=1.8 memory_bandwidth=7.68e11 memory_bandwidth_all=7.68e11"},
    {"a4000", "sm_86",
     "num_sms=48 l2_bytes=4194304 clock_ghz=1.56 memory_bandwidth=4.48e11 "
     "memory_bandwidth_all=4.48e11"},
    // NVIDIA GeForce RTX 3060 laptop (product page): 30 SMs, 1283 to 1703 MHz at 60 to 115 W, here
    // that of 60 W; 192 bits at 14 Gbit/s; 3 MB of L2.
    {"rtx3060-laptop", "sm_86",
     "num_sms=30 l2_bytes=3145728 clock_ghz=1.283 memory_bandwidth=3.36e11 "
     "memory_bandwidth_all=3.36e11"},
    // NVIDIA Jetson AGX Orin (data sheet): 64 GB: 2048 cores at 1.3 GHz; 32 GB: 1792 cores at
    // 930 MHz; both 204.8 GB/s. Limits of compute capability 8.7.
    {"orin", "sm_80",
     "compute_capability=87 num_sms=16 max_threads_per_sm=1536 max_blocks_per_sm=16 "
     "fma_lanes_per_sm=128 l2_bytes=4194304 clock_ghz=1.3 memory_bandwidth=2.048e11 "
     "memory_bandwidth_all=2.048e11"},
    {"orin-32", "sm_80",
     "compute_capability=87 num_sms=14 max_threads_per_sm=1536 max_blocks_per_sm=16 "
     "fma_lanes_per_sm=128 l2_bytes=4194304 clock_ghz=0.93 memory_bandwidth=2.048e11 "
     "memory_bandwidth_all=2.048e11"},
    // NVIDIA H100 SXM (data sheet 2023): 66.9 TFLOP/s, 3.35 TB/s; H200 SXM (2023): the same
    // die, 4.8 TB/s. Tensor rates are advertised at a lower clock, 989 TFLOP/s of f16.
    {"h100", "sm_90a", "clock_ghz=1.98"},
    {"h200", "sm_90a", "clock_ghz=1.98 memory_bandwidth=4.8e12 memory_bandwidth_all=4.8e12"},
};
// clang-format on

Target cpu_target(const CpuRow& row, std::string name) {
  Target t;
  t.kind = TargetKind::kCpu;
  t.name = std::move(name);
  t.llvm_cpu = row.name;
  t.vector_bytes = row.vector_bytes;
  t.num_vector_registers = row.num_vector_registers;
  t.fma_ports = row.fma_ports;
  t.fma_latency_cycles = row.fma_latency_cycles;
  t.load_ports = row.load_ports;
  t.l1d_bytes = row.l1d_bytes;
  t.l2_bytes = row.l2_bytes;
  t.l3_bytes = row.l3_bytes;
  t.cache_line_bytes = 64;
  t.num_cores = row.num_cores;
  t.num_threads = row.num_cores;
  t.platform.clock_ghz = row.clock_ghz;
  return t;
}

Target gpu_target(const GpuRow& row, TargetKind kind) {
  Target t;
  t.kind = kind;
  t.name = std::string(to_string(kind)) + ":" + row.name;
  t.compute_capability = row.compute_capability;
  t.num_sms = row.num_sms;
  t.warp_size = 32;
  t.max_threads_per_block = 1024;
  t.max_threads_per_sm = row.max_threads_per_sm;
  t.max_blocks_per_sm = row.max_blocks_per_sm;
  t.registers_per_sm = 64 * kKiB;
  t.max_registers_per_thread = 255;
  t.smem_bytes_per_block = row.smem_bytes_per_block;
  t.smem_bytes_per_sm = row.smem_bytes_per_sm;
  t.fma_lanes_per_sm = row.fma_lanes_per_sm;
  t.load_lanes_per_sm = row.load_lanes_per_sm;
  t.tensor_macs_per_sm = row.tensor_macs_per_sm;
  t.l2_bytes = row.l2_bytes;
  t.cache_line_bytes = 128;
  t.platform.clock_ghz = row.clock_ghz;
  t.platform.memory_bandwidth = row.memory_gbytes * 1e9;
  t.platform.memory_bandwidth_all = row.memory_gbytes * 1e9;
  return t;
}

std::optional<Target> find_named(std::string_view name) {
  if (name == "cpu") return cpu_target(kCpus[0], "cpu");
  for (const CpuRow& row : kCpus) {
    if (name == std::string("cpu:") + row.name) return cpu_target(row, std::string(name));
  }
  for (const GpuRow& row : kGpus) {
    for (TargetKind kind : {TargetKind::kCuda, TargetKind::kCudaHost}) {
      Target target = gpu_target(row, kind);
      if (target.name == name) return target;
    }
  }
  return std::nullopt;
}

// Calls f(field name, field of each target) for every field that the text form can override.
template <typename T, typename F>
void for_each_field(T& t, F&& f) {
  f("llvm_cpu", t.llvm_cpu);
  f("llvm_features", t.llvm_features);
  f("vector_bytes", t.vector_bytes);
  f("num_vector_registers", t.num_vector_registers);
  f("fma_ports", t.fma_ports);
  f("fma_latency_cycles", t.fma_latency_cycles);
  f("load_ports", t.load_ports);
  f("l1d_bytes", t.l1d_bytes);
  f("l2_bytes", t.l2_bytes);
  f("l3_bytes", t.l3_bytes);
  f("cache_line_bytes", t.cache_line_bytes);
  f("num_cores", t.num_cores);
  f("num_threads", t.num_threads);
  f("compute_capability", t.compute_capability);
  f("num_sms", t.num_sms);
  f("warp_size", t.warp_size);
  f("max_threads_per_block", t.max_threads_per_block);
  f("max_threads_per_sm", t.max_threads_per_sm);
  f("max_blocks_per_sm", t.max_blocks_per_sm);
  f("registers_per_sm", t.registers_per_sm);
  f("max_registers_per_thread", t.max_registers_per_thread);
  f("smem_bytes_per_block", t.smem_bytes_per_block);
  f("smem_bytes_per_sm", t.smem_bytes_per_sm);
  f("fma_lanes_per_sm", t.fma_lanes_per_sm);
  f("load_lanes_per_sm", t.load_lanes_per_sm);
  f("tensor_macs_per_sm", t.tensor_macs_per_sm);
  f("allow_tf32", t.allow_tf32);
  f("constants_bytes", t.constants_bytes);
  f("network", t.network);
  f("clock_ghz", t.platform.clock_ghz);
  f("fma_gflops", t.platform.fma_gflops);
  f("fma_gflops_all", t.platform.fma_gflops_all);
  f("l1_bandwidth", t.platform.l1_bandwidth);
  f("l2_bandwidth", t.platform.l2_bandwidth);
  f("l3_bandwidth", t.platform.l3_bandwidth);
  f("memory_bandwidth", t.platform.memory_bandwidth);
  f("l2_bandwidth_all", t.platform.l2_bandwidth_all);
  f("l3_bandwidth_all", t.platform.l3_bandwidth_all);
  f("memory_bandwidth_all", t.platform.memory_bandwidth_all);
  f("launch_ns", t.platform.launch_ns);
}

bool parse_value(std::string_view text, std::string* out) {
  *out = std::string(text);
  return true;
}
bool parse_value(std::string_view text, int64_t* out) {
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, *out);
  return code == std::errc() && stop == end && *out >= 0;
}
bool parse_value(std::string_view text, double* out) {
  const char* end = text.data() + text.size();
  const auto [stop, code] = std::from_chars(text.data(), end, *out);
  return code == std::errc() && stop == end && std::isfinite(*out) && *out >= 0;
}

std::string print_value(const std::string& value) { return value; }
std::string print_value(int64_t value) { return std::to_string(value); }
std::string print_value(double value) {
  char text[32];
  const auto [stop, code] = std::to_chars(text, text + sizeof(text), value);
  return code == std::errc() ? std::string(text, stop) : "0";
}

Result<void> override_field(Target* target, std::string_view word) {
  const std::size_t equal = word.find('=');
  const std::string_view key = word.substr(0, equal);
  const std::string_view value = equal == word.npos ? "" : word.substr(equal + 1);
  bool found = false;
  bool parsed = false;
  for_each_field(*target, [&](std::string_view name, auto& field) {
    if (name != key) return;
    found = true;
    auto read = field;
    parsed = parse_value(value, &read);
    if (parsed) field = read;
  });
  if (!found || !parsed || equal == word.npos) {
    return error(Diag::kTargetField, std::string(key), std::string(value));
  }
  return {};
}

std::string joined_names() {
  std::string names;
  for (const std::string& name : target_names()) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

std::string_view to_string(TargetKind kind) {
  switch (kind) {
    case TargetKind::kCpu: return "cpu";
    case TargetKind::kCuda: return "cuda";
    case TargetKind::kCudaHost: return "cuda-host";
  }
  PRUNERC_UNREACHABLE("target kind");
}

double Target::peak_gflops() const {
  if (platform.fma_gflops > 0) return platform.fma_gflops;
  const double lanes_per_cycle = static_cast<double>(
      kind == TargetKind::kCpu ? fma_ports * (vector_bytes / 4) : num_sms * fma_lanes_per_sm);
  return 2.0 * lanes_per_cycle * platform.clock_ghz;
}

std::vector<std::string> target_names() {
  std::vector<std::string> names = {"cpu"};
  for (const CpuRow& row : kCpus) names.push_back(std::string("cpu:") + row.name);
  for (const GpuRow& row : kGpus) names.push_back(std::string("cuda:") + row.name);
  for (const GpuRow& row : kGpus) names.push_back(std::string("cuda-host:") + row.name);
  return names;
}

std::vector<std::string> device_names() {
  std::vector<std::string> names;
  for (const DeviceRow& row : kDevices) names.push_back(std::string("cuda:") + row.name);
  return names;
}

Result<Target> target_from_string(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t start = text.find_first_not_of(" \t\n");
    if (start == text.npos) break;
    text.remove_prefix(start);
    const std::size_t size = std::min(text.find_first_of(" \t\n"), text.size());
    words.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  const std::string_view name = words.empty() ? std::string_view() : words[0];
  for (const DeviceRow& row : kDevices) {
    if (name != std::string("cuda:") + row.name) continue;
    std::string full = std::string("cuda:") + row.base + " " + row.overrides;
    for (std::size_t i = 1; i < words.size(); ++i) full += " " + std::string(words[i]);
    return target_from_string(full);
  }
  std::optional<Target> target = find_named(name);
  if (!target) return error(Diag::kTargetUnknown, joined_names(), std::string(name));
  for (std::size_t i = 1; i < words.size(); ++i) {
    PRUNERC_TRY_VOID(override_field(&*target, words[i]));
  }
  return *std::move(target);
}

bool has_feature(const Target& target, std::string_view name) {
  // Whether the list, whose words end with `separator`, has the word.
  const auto lists = [](std::string_view list, char separator, std::string_view word) {
    while (!list.empty()) {
      const std::size_t end = std::min(list.find(separator), list.size());
      if (list.substr(0, end) == word) return true;
      list.remove_prefix(std::min(end + 1, list.size()));
    }
    return false;
  };
  if (target.kind != TargetKind::kCpu) return false;
  if (lists(target.llvm_features, ',', "-" + std::string(name))) return false;
  // Without tile registers there is nothing that multiplies them.
  if (name.starts_with("amx-") && lists(target.llvm_features, ',', "-amx-tile")) return false;
  if (lists(target.llvm_features, ',', "+" + std::string(name))) return true;
  for (const CpuFeatures& row : kCpuFeatures) {
    if (target.llvm_cpu == row.name) return lists(row.features, ' ', name);
  }
  return false;
}

std::string to_string(const Target& target) {
  std::string text = target.name;
  Target base = find_named(target.name).value_or(Target{});
  for_each_field(base, [&](std::string_view name, auto& usual) {
    for_each_field(target, [&](std::string_view other, const auto& value) {
      if constexpr (std::is_same_v<decltype(usual),
                                   std::remove_cv_t<std::remove_reference_t<decltype(value)>>&>) {
        if (name == other && !(usual == value)) {
          text += " " + std::string(name) + "=" + print_value(value);
        }
      }
    });
  });
  return text;
}

}  // namespace prunerc::ir
