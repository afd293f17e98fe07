#include "costmodel/latency/cpu.h"

#include "costmodel/latency/core.h"
#include "costmodel/latency/traffic.h"

#include <algorithm>
#include <cmath>

namespace prunerc::costmodel {
namespace {

// As kMemoryBytesPerCycle.
constexpr double kL2BytesPerCycle = 48;
constexpr double kL3BytesPerCycle = 24;
/// Fork and join of a warm thread pool where not measured.
constexpr double kLaunchNs = 3000;

/// Cycles for a line that no prefetcher has brought while as many others are under way as a core
/// can have: of reaching each level after the one before.
constexpr double kL2VisitCycles = 2, kL3VisitCycles = 3, kMemoryVisitCycles = 12;

struct Rates {
  double ghz = 3.0;
  Sym l2, l3, memory;  // bytes per ns, of as many threads as work
};

Sym rate(double measured_one, double measured_all, double fallback, Sym threads,
         double max_threads) {
  const double one = measured_one > 0 ? measured_one * 1e-9 : fallback;
  const double all = measured_all > 0 ? measured_all * 1e-9 : one * std::sqrt(max_threads);
  return select(less_equal(threads, 1), one, min(one * threads, std::max(one, all)));
}

Rates rates_of(const ir::Target& target, Sym threads) {
  const ir::Platform& p = target.platform;
  Rates r;
  if (p.clock_ghz > 0) r.ghz = p.clock_ghz;
  const auto most = static_cast<double>(std::max<int64_t>(1, target.num_threads));
  r.l2 = rate(p.l2_bandwidth, p.l2_bandwidth_all, kL2BytesPerCycle * r.ghz, threads, most);
  r.l3 = rate(p.l3_bandwidth, p.l3_bandwidth_all, kL3BytesPerCycle * r.ghz, threads, most);
  r.memory =
      rate(p.memory_bandwidth, p.memory_bandwidth_all, kMemoryBytesPerCycle * r.ghz, threads, most);
  return r;
}

/// How a nest spreads over threads.
struct Spread {
  Sym threads = 1;
  Sym share = 1;     // of the work done by the busiest thread
  Sym launches = 0;  // parallel loops started
  ir::LoopId loop;   // the parallel loop; invalid if none
};

Spread spread_of(const Nest& nest, const ir::Target& target) {
  Spread spread;
  Sym outside = 1;
  for (const NestLoop& loop : nest.loops) {
    if (loop.kind != ir::LoopKind::kParallel) {
      outside *= loop.extent;
      continue;
    }
    const auto most = static_cast<double>(std::max<int64_t>(1, target.num_threads));
    spread.threads = min(most, loop.extent);
    spread.share = ceil(loop.extent / spread.threads) / loop.extent;
    spread.launches = select(less(1, spread.threads), outside, 0);
    spread.loop = loop.id;
    break;
  }
  return spread;
}

}  // namespace

void add_cpu_terms(const NestTable& table, const ir::Target& target, const TermModel& model,
                   LatencySymbols* out) {
  const std::vector<Traffic> traffic = estimate_traffic(table, target);
  const double launch = target.platform.launch_ns > 0 ? target.platform.launch_ns : kLaunchNs;
  ir::LoopId last_parallel;
  for (std::size_t i = 0; i < table.nests().size(); ++i) {
    const Nest& nest = table.nests()[i];
    const CoreCost core = core_cost(table, nest, target);
    const Spread spread = spread_of(nest, target);
    const Rates rates = rates_of(target, spread.threads);
    // Bandwidths are of all working threads together; an uneven split leaves some idle.
    const Sym uneven = spread.share * spread.threads;
    LatencyTerm term;
    if (nest.block != nullptr) term.name = nest.block->name;
    const Sym waiting = traffic[i].l1_miss_visits * kL2VisitCycles +
                        traffic[i].l2_miss_visits * kL3VisitCycles +
                        traffic[i].l3_miss_visits * kMemoryVisitCycles;
    term.parts_ns = {
        core.cycles * spread.share / rates.ghz, traffic[i].l1_miss_bytes / rates.l2 * uneven,
        traffic[i].l2_miss_bytes / rates.l3 * uneven,
        traffic[i].l3_miss_bytes / rates.memory * uneven, waiting * spread.share / rates.ghz};
    term.total_ns = model.total(term.parts_ns);
    out->core_ns += term.parts_ns[0];
    out->l2_ns += term.parts_ns[1];
    out->l3_ns += term.parts_ns[2];
    out->memory_ns += term.parts_ns[3];
    out->latency_ns += term.parts_ns[4];
    out->total_ns += term.total_ns;
    // Nests of one parallel loop start together.
    if (spread.loop.valid() && spread.loop != last_parallel) {
      out->launch_ns += spread.launches * launch;
    }
    last_parallel = spread.loop;
    out->code_size += core.code_size;
    out->max_tile_registers = max(out->max_tile_registers, core.tile_registers);
    out->terms.push_back(std::move(term));
  }
  out->total_ns += model.launch(out->launch_ns);
}

}  // namespace prunerc::costmodel
