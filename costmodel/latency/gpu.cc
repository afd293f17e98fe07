#include "costmodel/latency/gpu.h"

#include "costmodel/latency/gpu_kernel.h"
#include "costmodel/latency/gpu_nest.h"
#include "ir/analysis/masks/loop_trims.h"

#include <algorithm>
#include <map>

namespace prunerc::costmodel {
namespace {

/// Where not measured: an empty kernel in a stream.
constexpr double kLaunchNs = 2500;
/// What starting and ending together adds to a kernel whose blocks come in clusters.
constexpr double kClusterNs = 1500;
/// Warp instructions that a multiprocessor starts per cycle: one per partition.
constexpr double kIssueWidth = 4;
/// The same of code that comes from beyond a partition's cache.
constexpr double kFetchWidth = 1;
/// Special functions per cycle and multiprocessor (CUDA C++ Programming Guide, throughput of native
/// instructions).
constexpr double kSpecialLanes = 16;
/// Bytes per cycle between L2 and one multiprocessor.
constexpr double kL2BytesPerSm = 64;
/// Share of L2 that one kernel's data can use.
constexpr double kUsableShare = 0.8;
/// Registers that a thread holds besides its buffers: addresses, counters, operands in flight.
constexpr double kOverheadRegisters = 24;
/// Registers are given to warps in granules.
constexpr double kRegisterGranule = 8;
constexpr double kWarp = 32;
/// Part of the tensor rate that instructions of one warp reach where those of four warps exist.
constexpr double kWarpTensorShare = 0.62;
/// Code that a partition keeps beside it, until Ampere and since Hopper.
constexpr double kCodeBytes = 12 * 1024, kHopperCodeBytes = 32 * 1024;
constexpr int64_t kHopper = 90;
constexpr int64_t kTuring = 75;
/// Bytes per cycle and multiprocessor from shared memory: a round.
constexpr double kWavefrontBytes = 128;

struct Device {
  explicit Device(const ir::Target& t) {
    const auto some = [](int64_t value, double otherwise) {
      return value > 0 ? static_cast<double>(value) : otherwise;
    };
    ghz = t.platform.clock_ghz > 0 ? t.platform.clock_ghz : 1.4;
    sms = some(t.num_sms, 80);
    fma_lanes = some(t.fma_lanes_per_sm, 64);
    load_lanes = some(t.load_lanes_per_sm, kWarp);
    tensor_macs = some(t.tensor_macs_per_sm, fma_lanes);
    if (t.compute_capability == kHopper) warp_tensor_share = kWarpTensorShare;
    if (t.compute_capability >= kHopper) code_bytes = kHopperCodeBytes;
    warps_per_sm = some(t.max_threads_per_sm, 2048) / kWarp;
    blocks_per_sm = some(t.max_blocks_per_sm, 32);
    registers_per_sm = some(t.registers_per_sm, 65536);
    smem_per_sm = some(t.smem_bytes_per_sm, 64 * 1024);
    l2_bytes = some(t.l2_bytes, 4 * 1024 * 1024) * kUsableShare;
    memory = t.platform.memory_bandwidth > 0 ? t.platform.memory_bandwidth * 1e-9 : 500;
    l2 = t.platform.l2_bandwidth > 0 ? t.platform.l2_bandwidth * 1e-9 : sms * ghz * 32;
    launch_ns = t.platform.launch_ns > 0 ? t.platform.launch_ns : kLaunchNs;
    // What was measured, where it was: in cycles of the stated clock.
    const double cycles_per_ns = sms * ghz;
    if (t.platform.fma_gflops > 0) fma_lanes = t.platform.fma_gflops / 2 / cycles_per_ns;
    if (t.compute_capability == kTuring) shared_wavefronts = 0.5;
    if (t.platform.l1_bandwidth > 0) {
      shared_wavefronts = t.platform.l1_bandwidth * 1e-9 / kWavefrontBytes / cycles_per_ns;
    }
  }
  double ghz, sms, fma_lanes, load_lanes, tensor_macs, warps_per_sm, blocks_per_sm,
      registers_per_sm, smem_per_sm, l2_bytes;
  double memory, l2;  // bytes per ns
  double launch_ns;
  double warp_tensor_share = 1;
  double code_bytes = kCodeBytes;
  double shared_wavefronts = 1;  // per cycle and multiprocessor
};

// Blocks that run on one multiprocessor at the same time; at least one, since limits are tested
// elsewhere.
Sym resident_blocks(const GpuKernel& k, const Device& d) {
  const Sym warps = ceil(k.threads() / kWarp);
  const Sym registers =
      min(255, ceil((k.registers + kOverheadRegisters) / kRegisterGranule) * kRegisterGranule);
  Sym out = min(d.blocks_per_sm, floor(d.warps_per_sm / warps));
  out = min(out, floor(d.registers_per_sm / (registers * warps * kWarp)));
  out = min(out, select(less(0, k.smem_bytes), floor(d.smem_per_sm / max(1, k.smem_bytes)),
                        d.blocks_per_sm));
  return max(1, out);
}

// The blocks that run at the same time: x first, as they are started.
GpuWave wave_of(const GpuKernel& k, Sym resident, const Device& d) {
  GpuWave out;
  Sym left = d.sms * resident;
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = min(k.grid[i], left);
    left = max(1, left / out[i]);
  }
  return out;
}

// Bytes of memory that one run of a kernel must move: each buffer once, and what a wave asks for
// again as far as it does not stay in L2.
Sym memory_bytes(const NestTable& table, const GpuKernel& k, Sym wave_bytes, const Device& d) {
  Sym unique = 0;
  std::vector<ir::BufferId> known;
  for (const std::size_t n : k.nests) {
    const Nest& nest = table.nests()[n];
    for (const NestAccess& a : nest.accesses) {
      if (table.program().buffer(a.buffer).scope != ir::Scope::kGlobal) continue;
      if (std::find(known.begin(), known.end(), a.buffer) != known.end()) continue;
      known.push_back(a.buffer);
      Sym bytes = static_cast<double>(a.element_bytes);
      for (std::size_t i = 0; i < a.facts.size(); ++i) {
        bytes *= min(table.shape(a.buffer)[i], a.facts[i].reach[0]);
      }
      unique += bytes;
    }
  }
  const Sym lost = 1 - min(1, d.l2_bytes / max(1, unique));
  return unique + max(0, wave_bytes - unique) * lost;
}

/// By loop: the part that runs of those that a mask trims.
using Shares = std::map<ir::LoopId, double>;

Shares masked_shares(const ir::Program& program) {
  Shares out;
  if (!program.domain().empty()) return out;
  ir::IrBuilder b(program);
  for (const auto& [loop, trim] : ir::masked_loop_trims(b, program)) out.emplace(loop, trim.share);
  return out;
}

// Of kernels that leave out both scores and what is summed up of them, which have no sketch with parameters; for others
// an instance costs what its sketch's symbols say.
Shares shares_in(const NestTable& table, const GpuKernel& k, const Shares& all) {
  Shares out;
  for (const std::size_t n : k.nests) {
    for (const NestLoop& loop : table.nests()[n].loops) {
      const auto at = all.find(loop.id);
      if (at != all.end()) out.insert(*at);
    }
  }
  return out.size() > 1 ? out : Shares();
}

GpuNestCost block_cost(const NestTable& table, const GpuKernel& k, const GpuWave& wave,
                       double code_bytes, const Shares& all, LatencySymbols* out) {
  GpuNestCost sum;
  const Shares shares = shares_in(table, k, all);
  for (const std::size_t n : k.nests) {
    const Nest& nest = table.nests()[n];
    const GpuNestCost c = gpu_nest_cost(table, nest, wave, code_bytes);
    Sym runs = 1;
    for (const NestLoop& loop : nest.loops) {
      if (const auto at = shares.find(loop.id); at != shares.end()) runs *= at->second;
    }
    sum.warp_instructions += c.warp_instructions * runs;
    sum.fetched_instructions += c.fetched_instructions * runs;
    sum.fma_lanes += c.fma_lanes * runs;
    sum.special_lanes += c.special_lanes * runs;
    sum.tensor_macs += c.tensor_macs * runs;
    sum.warp_macs += c.warp_macs * runs;
    sum.shared_wavefronts += c.shared_wavefronts * runs;
    sum.load_lanes += c.load_lanes * runs;
    sum.l2_bytes += c.l2_bytes * runs;
    sum.memory_bytes += c.memory_bytes * runs;
    sum.latency_cycles += c.latency_cycles * runs;
    out->code_size += c.code_size;
  }
  return sum;
}

LatencyTerm term_of(const NestTable& table, const GpuKernel& k, const Device& d,
                    const Shares& shares, LatencySymbols* out) {
  const Sym resident = resident_blocks(k, d);
  const GpuNestCost sum = block_cost(table, k, wave_of(k, resident, d), d.code_bytes, shares, out);
  const Sym blocks = k.blocks();
  // Blocks of the busiest multiprocessor, which share its units; rounds of those that fit at once,
  // which wait for each other.
  const Sym busiest = ceil(blocks / d.sms);
  const Sym rounds = ceil(blocks / (d.sms * resident));
  const Sym per_ns = busiest / d.ghz;
  const Sym l2_bytes = sum.l2_bytes * blocks;
  LatencyTerm term;
  term.name = k.name;
  term.parts_ns.assign(kNumTermParts, Sym(0));
  const auto part = [&](TermPart p) -> Sym& { return term.parts_ns[static_cast<std::size_t>(p)]; };
  part(TermPart::kL2) = max(l2_bytes / d.l2, sum.l2_bytes / kL2BytesPerSm * per_ns);
  part(TermPart::kMemory) = memory_bytes(table, k, sum.memory_bytes * blocks, d) / d.memory;
  part(TermPart::kIssue) =
      (sum.warp_instructions + sum.fetched_instructions * (kIssueWidth / kFetchWidth - 1)) /
      kIssueWidth * per_ns;
  part(TermPart::kFma) = sum.fma_lanes / d.fma_lanes * per_ns;
  part(TermPart::kSpecial) = sum.special_lanes / kSpecialLanes * per_ns;
  part(TermPart::kTensor) =
      (sum.tensor_macs + sum.warp_macs * (1 / d.warp_tensor_share - 1)) / d.tensor_macs * per_ns;
  part(TermPart::kShared) =
      max(sum.shared_wavefronts / d.shared_wavefronts, sum.load_lanes / d.load_lanes) * per_ns;
  part(TermPart::kLatency) = sum.latency_cycles * rounds / d.ghz;
  return term;
}

}  // namespace

void add_gpu_terms(const NestTable& table, const ir::Target& target, const TermModel& model,
                   LatencySymbols* out) {
  const Device device(target);
  const std::vector<GpuKernel> kernels = gpu_kernels(table);
  const Shares shares = masked_shares(table.program());
  for (const GpuKernel& k : kernels) {
    LatencyTerm term = term_of(table, k, device, shares, out);
    term.total_ns = model.total(term.parts_ns);
    const auto part = [&](TermPart p) { return term.parts_ns[static_cast<std::size_t>(p)]; };
    Sym slowest = 0;
    for (const TermPart p : {TermPart::kIssue, TermPart::kFma, TermPart::kSpecial,
                             TermPart::kTensor, TermPart::kShared, TermPart::kLatency}) {
      slowest = max(slowest, part(p));
    }
    out->core_ns += slowest;
    out->l2_ns += part(TermPart::kL2);
    out->memory_ns += part(TermPart::kMemory);
    out->launch_ns += device.launch_ns + select(less(1, k.cluster), kClusterNs, 0);
    out->total_ns += term.total_ns;
    out->max_tile_registers = max(out->max_tile_registers, k.registers);
    out->terms.push_back(std::move(term));
  }
  out->total_ns += model.launch(out->launch_ns);
  out->limits = gpu_limits(kernels, target);
}

}  // namespace prunerc::costmodel
