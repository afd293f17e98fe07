#include "costmodel/latency/roofline.h"

#include "costmodel/latency/core.h"
#include "costmodel/latency/nest.h"
#include "costmodel/latency/traffic.h"

#include <algorithm>
#include <cmath>

namespace prunerc::costmodel {
namespace {

// Bytes per cycle of one core where the platform was not measured; of the order that x86 server
// cores reach.
constexpr double kL2BytesPerCycle = 48;
constexpr double kL3BytesPerCycle = 24;
constexpr double kMemoryBytesPerCycle = 8;
/// Fork and join of a warm thread pool where not measured.
constexpr double kLaunchNs = 3000;
/// Share of the smaller costs of a nest that the largest one does not hide.
constexpr double kNotHidden = 0.3;

struct Rates {
  double ghz, l2, l3, memory;  // bytes per ns, of as many threads as work
};

double rate(double measured_one, double measured_all, double fallback, double threads,
            double max_threads) {
  const double one = measured_one > 0 ? measured_one * 1e-9 : fallback;
  const double all = measured_all > 0 ? measured_all * 1e-9 : one * std::sqrt(max_threads);
  return threads <= 1 ? one : std::min(one * threads, std::max(one, all));
}

Rates rates_of(const ir::Target& target, double threads) {
  const ir::Platform& p = target.platform;
  Rates r;
  r.ghz = p.clock_ghz > 0 ? p.clock_ghz : 3.0;
  const auto most = static_cast<double>(std::max<int64_t>(1, target.num_threads));
  r.l2 = rate(p.l2_bandwidth, p.l2_bandwidth_all, kL2BytesPerCycle * r.ghz, threads, most);
  r.l3 = rate(p.l3_bandwidth, p.l3_bandwidth_all, kL3BytesPerCycle * r.ghz, threads, most);
  r.memory =
      rate(p.memory_bandwidth, p.memory_bandwidth_all, kMemoryBytesPerCycle * r.ghz, threads, most);
  return r;
}

/// How a nest spreads over threads.
struct Spread {
  double threads = 1;
  double share = 1;     // of the work done by the busiest thread
  double launches = 0;  // parallel loops started
  ir::LoopId loop;      // the parallel loop; invalid if none
};

Spread spread_of(const Nest& nest, const ir::Target& target) {
  Spread spread;
  double outside = 1;
  for (const NestLoop& loop : nest.loops) {
    const auto extent = static_cast<double>(loop.extent);
    if (loop.kind != ir::LoopKind::kParallel) {
      outside *= extent;
      continue;
    }
    const auto most = static_cast<double>(std::max<int64_t>(1, target.num_threads));
    spread.threads = std::min(most, extent);
    spread.share = std::ceil(extent / spread.threads) / extent;
    spread.launches = spread.threads > 1 ? outside : 0;
    spread.loop = loop.id;
    break;
  }
  return spread;
}

}  // namespace

LatencyEstimate estimate_latency(const ir::Program& program, const ir::Target& target) {
  const NestTable table(program);
  const std::vector<Traffic> traffic = estimate_traffic(table, target);
  LatencyEstimate out;
  ir::LoopId last_parallel;
  for (std::size_t i = 0; i < table.nests().size(); ++i) {
    const Nest& nest = table.nests()[i];
    const CoreCost core = core_cost(table, nest, target);
    const Spread spread = spread_of(nest, target);
    const Rates rates = rates_of(target, spread.threads);
    // Bandwidths are of all working threads together; an uneven split leaves some idle.
    const double uneven = spread.share * spread.threads;
    const double parts[] = {core.cycles * spread.share / rates.ghz,
                            traffic[i].l1_miss_bytes / rates.l2 * uneven,
                            traffic[i].l2_miss_bytes / rates.l3 * uneven,
                            traffic[i].l3_miss_bytes / rates.memory * uneven};
    double sum = 0, largest = 0;
    for (const double part : parts) {
      sum += part;
      largest = std::max(largest, part);
    }
    out.core_ns += parts[0];
    out.l2_ns += parts[1];
    out.l3_ns += parts[2];
    out.memory_ns += parts[3];
    out.total_ns += largest + kNotHidden * (sum - largest);
    // Nests of one parallel loop start together.
    if (spread.launches > 0 && spread.loop != last_parallel) {
      const double launch = target.platform.launch_ns > 0 ? target.platform.launch_ns : kLaunchNs;
      out.launch_ns += spread.launches * launch;
    }
    last_parallel = spread.loop;
    out.code_size += core.code_size;
    out.max_tile_registers = std::max(out.max_tile_registers, core.tile_registers);
  }
  out.total_ns += out.launch_ns;
  return out;
}

}  // namespace prunerc::costmodel
