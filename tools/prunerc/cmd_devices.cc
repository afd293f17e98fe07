#include "runtime/cpu/host.h"
#include "tools/driver/platform.h"
#include "tools/prunerc/cli.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstdio>
#include <memory>

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

void print_text(const ir::Target& t) {
  const ir::Platform& p = t.platform;
  fmt::print("cpu: {}\n", runtime::host_model_name());
  fmt::print("  code for        {}, {}-byte vectors, {} vector registers\n", t.llvm_cpu,
             t.vector_bytes, t.num_vector_registers);
  fmt::print("  caches          L1d {}, L2 {}, L3 {}, lines of {} bytes\n", size_text(t.l1d_bytes),
             size_text(t.l2_bytes), size_text(t.l3_bytes), t.cache_line_bytes);
  fmt::print("  threads         {} hardware, {} cores\n", t.num_threads, t.num_cores);
  fmt::print("  clock           {:.2f} GHz (from a chain of dependent additions)\n", p.clock_ghz);
  fmt::print("  parallel loop   {:.2f} us to start and join\n", p.launch_ns / 1e3);
  fmt::print("  measured limits     one thread  all threads\n");
  fmt::print("    f32 GFLOP/s       {:>10.1f}   {:>10.1f}\n", p.fma_gflops, p.fma_gflops_all);
  fmt::print("    L1 GB/s           {:>10}   {:>10}\n", rate_text(p.l1_bandwidth), "-");
  fmt::print("    L2 GB/s           {:>10}   {:>10}\n", rate_text(p.l2_bandwidth),
             rate_text(p.l2_bandwidth_all));
  fmt::print("    L3 GB/s           {:>10}   {:>10}\n", rate_text(p.l3_bandwidth),
             rate_text(p.l3_bandwidth_all));
  fmt::print("    memory GB/s       {:>10}   {:>10}\n", rate_text(p.memory_bandwidth),
             rate_text(p.memory_bandwidth_all));
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

std::string to_json(const ir::Target& t) {
  const ir::Platform& p = t.platform;
  const Json limits = {{"clock_ghz", p.clock_ghz},
                       {"launch_ns", p.launch_ns},
                       {"fma_gflops", p.fma_gflops},
                       {"fma_gflops_all", p.fma_gflops_all},
                       {"l1_gbps", p.l1_bandwidth / kGiga},
                       {"l2_gbps", p.l2_bandwidth / kGiga},
                       {"l2_gbps_all", p.l2_bandwidth_all / kGiga},
                       {"l3_gbps", p.l3_bandwidth / kGiga},
                       {"l3_gbps_all", p.l3_bandwidth_all / kGiga},
                       {"memory_gbps", p.memory_bandwidth / kGiga},
                       {"memory_gbps_all", p.memory_bandwidth_all / kGiga}};
  const Json cpu = {{"target", t.name},
                    {"model", runtime::host_model_name()},
                    {"llvm_cpu", t.llvm_cpu},
                    {"vector_bytes", t.vector_bytes},
                    {"num_vector_registers", t.num_vector_registers},
                    {"l1d_bytes", t.l1d_bytes},
                    {"l2_bytes", t.l2_bytes},
                    {"l3_bytes", t.l3_bytes},
                    {"num_cores", t.num_cores},
                    {"num_threads", t.num_threads},
                    {"limits", limits},
                    {"text", ir::to_string(t)}};
  return Json({{"schema", "prunerc.devices/1"},
               {"devices", Json::array({cpu})},
               {"described", described()},
               {"targets", ir::target_names()}})
      .dump();
}

int devices(const DevicesVerb& verb) {
  if (verb.remeasure) fmt::print(stderr, "measuring this machine; keep it idle for two seconds\n");
  host_platform(verb.remeasure);
  const Result<ir::Target> target = resolve_target("cpu", 0);
  if (!target.ok()) return fail(target.error(), kDeviceProblem);
  if (verb.json) {
    fmt::print("{}\n", to_json(*target));
  } else {
    print_text(*target);
  }
  return kSuccess;
}

}  // namespace

void add_devices(CLI::App& app, Action& action) {
  CLI::App* verb = app.add_subcommand("devices", "describe this machine and its measured limits");
  auto args = std::make_shared<DevicesVerb>();
  verb->add_flag("--json", args->json, "one JSON object");
  verb->add_flag("--remeasure", args->remeasure, "measure again instead of using what is kept");
  verb->callback([args, &action] { action = [args] { return devices(*args); }; });
}

}  // namespace prunerc::cli
