#include "runtime/cpu/host.h"
#include "tools/driver/gpu_platform.h"
#include "tools/driver/platform.h"
#include "tools/prunerc/cli.h"
#include "tools/prunerc/json.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>
#include <utility>

namespace prunerc::cli {
namespace {

using Json = nlohmann::ordered_json;

struct DevicesVerb {
  bool json = false;
  bool remeasure = false;
};

constexpr double kGiga = 1e9;

std::string size_text(int64_t bytes) {
  if (bytes <= 0) return "none";
  if (bytes >= (1 << 20)) return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{:.4g} KiB", static_cast<double>(bytes) / (1 << 10));
}

std::string rate_text(double bytes_per_second) {
  return bytes_per_second > 0 ? fmt::format("{:.1f}", bytes_per_second / kGiga) : "-";
}

// A limit of one thread and of all.
struct LimitRow {
  const char* name;
  const char* key;
  const char* key_all;
  double ir::Platform::*one;
  double ir::Platform::*all;  // null: not measured
  double scale;
};
constexpr LimitRow kLimitRows[] = {
    {"f32 GFLOP/s", "fma_gflops", "fma_gflops_all", &ir::Platform::fma_gflops,
     &ir::Platform::fma_gflops_all, 1},
    {"L1 GB/s", "l1_gbps", "", &ir::Platform::l1_bandwidth, nullptr, kGiga},
    {"L2 GB/s", "l2_gbps", "l2_gbps_all", &ir::Platform::l2_bandwidth,
     &ir::Platform::l2_bandwidth_all, kGiga},
    {"L3 GB/s", "l3_gbps", "l3_gbps_all", &ir::Platform::l3_bandwidth,
     &ir::Platform::l3_bandwidth_all, kGiga},
    {"memory GB/s", "memory_gbps", "memory_gbps_all", &ir::Platform::memory_bandwidth,
     &ir::Platform::memory_bandwidth_all, kGiga},
};

// "98.1 -3%": the best sample, and how far the median stayed behind it.
std::string limit_text(const ir::Platform& limits, const ir::Platform& spreads,
                       double ir::Platform::*field, double scale) {
  if (field == nullptr || limits.*field <= 0) return "-";
  return fmt::format("{:.1f} {:>5}", limits.*field / scale,
                     fmt::format("-{:.0f}%", 100 * spreads.*field));
}

// Dense products of f16, at the clock of the table.
double tensor_gflops(const ir::Target& t) {
  return 2.0 * static_cast<double>(t.num_sms * t.tensor_macs_per_sm) * t.platform.clock_ghz;
}

Json described() {
  Json all = Json::array();
  for (const std::string& name : ir::device_names()) {
    const ir::Target d = *ir::target_from_string(name);
    all.push_back({{"name", name},
                   {"num_sms", d.num_sms},
                   {"f32_gflops", d.peak_gflops()},
                   {"tensor_f16_gflops", tensor_gflops(d)},
                   {"memory_gbps", d.platform.memory_bandwidth / kGiga},
                   {"smem_bytes_per_sm", d.smem_bytes_per_sm},
                   {"l2_bytes", d.l2_bytes},
                   {"text", ir::to_string(d)}});
  }
  return all;
}

void print_gpu(const GpuPlatform& gpu) {
  const ir::Target& t = gpu.target;
  fmt::print("gpu: {}, driver {}.{}\n", gpu.name, gpu.driver_version / 1000,
             gpu.driver_version % 1000 / 10);
  fmt::print("  code for        {}\n", t.name);
  fmt::print("  attributes      {} SMs at {:.2f} GHz, L2 {}, shared {} per SM, {} per block\n",
             t.num_sms, t.platform.clock_ghz, size_text(t.l2_bytes), size_text(t.smem_bytes_per_sm),
             size_text(t.smem_bytes_per_block));
  if (!gpu.limits) {
    fmt::print("  not measured    {}\n", gpu.problem);
    return;
  }
  const runtime::cuda::GpuLimits& l = *gpu.limits;
  fmt::print("  measured limits ({})\n", l.timer);
  fmt::print("    f32 GFLOP/s                {:>10.0f}\n", l.fma_gflops);
  fmt::print("    f16 TensorCore GFLOP/s     {:>10.0f}\n", l.tensor_gflops);
  fmt::print("    memory GB/s, read, copy    {:>10.0f} {:>10.0f}\n", l.memory_read_gbps,
             l.memory_copy_gbps);
  fmt::print("    L2 GB/s, read              {:>10.0f}\n", l.l2_read_gbps);
  fmt::print("    shared memory GB/s, read   {:>10.0f}\n", l.shared_read_gbps);
  fmt::print("    empty kernel               {:>10.2f} us\n", l.launch_ns / 1e3);
}

Json gpu_json(const GpuPlatform& gpu) {
  const ir::Target& t = gpu.target;
  Json json = {
      {"target", t.name},        {"model", gpu.name},      {"driver_version", gpu.driver_version},
      {"num_sms", t.num_sms},    {"l2_bytes", t.l2_bytes}, {"clock_ghz", t.platform.clock_ghz},
      {"text", ir::to_string(t)}};
  if (!gpu.limits) json["not_measured"] = gpu.problem;
  if (!gpu.limits) return json;
  const runtime::cuda::GpuLimits& l = *gpu.limits;
  json["limits"] = {{"launch_ns", l.launch_ns},
                    {"fma_gflops", l.fma_gflops},
                    {"tensor_f16_gflops", l.tensor_gflops},
                    {"memory_read_gbps", l.memory_read_gbps},
                    {"memory_copy_gbps", l.memory_copy_gbps},
                    {"l2_read_gbps", l.l2_read_gbps},
                    {"shared_read_gbps", l.shared_read_gbps},
                    {"timer", l.timer}};
  return json;
}

void print_text(const ir::Target& t, const ir::Platform& spread, const Result<GpuPlatform>& gpu) {
  const ir::Platform& p = t.platform;
  fmt::print("cpu: {}\n", runtime::host_model_name());
  fmt::print("  code for        {}, {}-byte vectors, {} vector registers\n", t.llvm_cpu,
             t.vector_bytes, t.num_vector_registers);
  fmt::print("  caches          L1d {}, L2 {}, L3 {}, lines of {} bytes\n", size_text(t.l1d_bytes),
             size_text(t.l2_bytes), size_text(t.l3_bytes), t.cache_line_bytes);
  fmt::print("  threads         {} hardware, {} cores\n", t.num_threads, t.num_cores);
  fmt::print("  clock           {:.2f} GHz (from a chain of dependent additions)\n", p.clock_ghz);
  fmt::print("  parallel loop   {:.2f} us to start and join\n", p.launch_ns / 1e3);
  fmt::print(
      "  measured limits       one thread       all threads   (best; how far the median stayed)\n");
  for (const LimitRow& row : kLimitRows) {
    fmt::print("    {:<14}{:>18}{:>18}\n", row.name, limit_text(p, spread, row.one, row.scale),
               limit_text(p, spread, row.all, row.scale));
  }
  if (gpu.ok()) print_gpu(*gpu);
  fmt::print("described GPUs (for studies without the device; nothing here is measured):\n");
  fmt::print("  name           SMs   f32 GFLOP/s  tensor f16  memory GB/s  shared/SM        L2\n");
  for (const std::string& name : ir::device_names()) {
    const ir::Target d = *ir::target_from_string(name);
    fmt::print("  {:<14}{:>4}  {:>12.0f}  {:>10.0f}  {:>11}  {:>9}  {:>8}\n", name, d.num_sms,
               d.peak_gflops(), tensor_gflops(d), rate_text(d.platform.memory_bandwidth),
               size_text(d.smem_bytes_per_sm), size_text(d.l2_bytes));
  }
  fmt::print("other targets (compile only, unless this machine runs them):");
  for (const std::string& name : ir::target_names()) {
    if (name != "cpu") fmt::print(" {}", name);
  }
  fmt::print("\n");
}

std::string to_json(const ir::Target& t, const ir::Platform& spread,
                    const Result<GpuPlatform>& gpu) {
  const ir::Platform& p = t.platform;
  Json limits = {{"clock_ghz", p.clock_ghz}, {"launch_ns", p.launch_ns}};
  Json spreads = {{"clock_ghz", spread.clock_ghz}};
  for (const LimitRow& row : kLimitRows) {
    for (const auto& [key, field] :
         {std::pair(row.key, row.one), std::pair(row.key_all, row.all)}) {
      if (field == nullptr) continue;
      limits[key] = p.*field / row.scale;
      spreads[key] = spread.*field;
    }
  }
  const Json cpu = {{"target", t.name},
                    {"model", runtime::host_model_name()},
                    {"name", runtime::host_name()},
                    {"llvm_cpu", t.llvm_cpu},
                    {"vector_bytes", t.vector_bytes},
                    {"num_vector_registers", t.num_vector_registers},
                    {"l1d_bytes", t.l1d_bytes},
                    {"l2_bytes", t.l2_bytes},
                    {"l3_bytes", t.l3_bytes},
                    {"num_cores", t.num_cores},
                    {"num_threads", t.num_threads},
                    {"limits", limits},
                    {"limit_spreads", spreads},
                    {"text", ir::to_string(t)}};
  Json devices = Json::array({cpu});
  if (gpu.ok()) devices.push_back(gpu_json(*gpu));
  return json_line(Json({{"schema", "prunerc.devices/1"},
                         {"devices", devices},
                         {"described", described()},
                         {"targets", ir::target_names()}}));
}

int devices(const DevicesVerb& verb) {
  if (verb.remeasure) fmt::print(stderr, "measuring this machine; keep it idle for two seconds\n");
  const ir::Platform spread = (verb.remeasure ? measure_host() : host_limits()).spread;
  const Result<ir::Target> target = resolve_target("cpu", 0);
  if (!target.ok()) return fail(target.error(), kDeviceProblem);
  const Result<GpuPlatform> gpu = gpu_platform(verb.remeasure);
  // No GPU is no mistake; one that the driver has and cannot describe is worth a word.
  if (!gpu.ok() && gpu.error().id() != Diag::kCudaMissing) {
    fmt::print(stderr, "gpu: {}\n", gpu.error().message());
  }
  if (verb.json) {
    fmt::print("{}\n", to_json(*target, spread, gpu));
  } else {
    print_text(*target, spread, gpu);
  }
  return kSuccess;
}

}  // namespace

void add_devices(CLI::App& verb, Action& action) {
  auto args = std::make_shared<DevicesVerb>();
  verb.add_flag("--json", args->json, "one JSON object");
  verb.add_flag("--remeasure", args->remeasure, "measure again instead of using what is kept");
  verb.callback([args, &action] { action = [args] { return devices(*args); }; });
}

}  // namespace prunerc::cli
