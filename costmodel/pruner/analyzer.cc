#include "costmodel/pruner/analyzer.h"

namespace prunerc::costmodel {
namespace {

constexpr double kGibi = 1073741824.0;
constexpr double kHalfBytes = 2;  // of f16

// Part of the places that are taken when `units` come in rounds of `places`.
Sym filled(Sym units, double places) { return units / (ceil(units / places) * places); }

// Blocks over multiprocessors. With fewer blocks than those, warps over their partitions.
Sym waves(const StatementSymbols& s, const PrunerDevice& device) {
  const double at_once = device.num_sms * device.blocks_per_sm;
  const Sym warps = ceil(s.threads / device.warp_size);
  const Sym few = filled(s.blocks * min(warps, device.partitions_per_sm),
                         device.partitions_per_sm * device.num_sms);
  return select(less_equal(at_once, s.blocks), filled(s.blocks, at_once), few);
}

PrunerPenalties penalties_of(const StatementSymbols& s, const PrunerDevice& device,
                             const PrunerOptions& options) {
  PrunerPenalties p;
  const Sym warps = s.threads / device.warp_size;
  if (options.warps) p.warps = warps / ceil(warps);
  if (options.waves) p.waves = waves(s, device);
  if (options.reuse) p.reuse = s.reuse / (1 + s.reuse);
  if (options.alignment) p.alignment = s.aligned;
  if (options.registers) p.registers = min(1, device.registers_per_thread / max(1, s.registers));
  if (options.version == PrunerVersion::kRelease) return p;
  if (options.shared && device.shared_bytes_per_sm > 0) {
    p.shared = select(less(0, s.shared_bytes),
                      min(1, device.shared_bytes_per_sm / max(1, s.shared_bytes)), 1);
  }
  if (options.transactions) {
    p.transactions = select(less(0, s.transferred_bytes),
                            min(1, s.useful_bytes / max(1, s.transferred_bytes)), 1);
  }
  return p;
}

// Tensor cores multiply elements of half the bytes twice as fast.
Sym peak_gflops(const StatementSymbols& s, const PrunerDevice& device) {
  if (device.tensor_gflops <= 0) return device.peak_gflops;
  return select(less(0, s.fragment_bytes),
                device.tensor_gflops * kHalfBytes / max(1, s.fragment_bytes), device.peak_gflops);
}

PrunerTerm term_of(const StatementSymbols& s, const PrunerDevice& device,
                   const PrunerOptions& options) {
  PrunerTerm term{s.buffer, penalties_of(s, device, options), 0, 0};
  const PrunerPenalties& p = term.penalties;
  Sym compute_rate = peak_gflops(s, device) * p.waves * p.warps * p.reuse * p.alignment;
  if (options.version == PrunerVersion::kRelease) {
    compute_rate *= p.registers;
    // Elements over bytes per second: as published.
    term.memory_ms = s.dram * 1000 / (device.bandwidth_gb_s * kGibi);
  } else {
    term.memory_ms =
        s.dram_bytes / (device.bandwidth_gb_s * p.registers * p.shared * p.transactions) / 1e6;
  }
  term.compute_ms = s.flops / compute_rate / 1e6;
  if (!options.memory) term.memory_ms = 0;
  return term;
}

}  // namespace

PrunerLatency pruner_latency(std::span<const StatementSymbols> statements,
                             const PrunerDevice& device, const PrunerOptions& options) {
  PrunerLatency out;
  for (const StatementSymbols& s : statements) {
    const PrunerTerm term = term_of(s, device, options);
    out.ms += options.version == PrunerVersion::kRelease ? max(term.compute_ms, term.memory_ms)
                                                         : term.compute_ms + term.memory_ms;
    out.terms.push_back(term);
  }
  return out;
}

SymbolCode derive_pruner(const ir::Program& sketch, const PrunerDevice& device,
                         const PrunerOptions& options) {
  ParamSpace space(sketch.domain());
  const NestTable table(sketch, space);
  const std::vector<StatementSymbols> symbols = pruner_symbols(table, device);
  Sym is_feasible = 1;
  for (const ir::Expr constraint : sketch.domain().constraints) {
    is_feasible = logical_and(is_feasible, space.value(constraint).value_or(1));
  }
  const Sym outputs[] = {pruner_latency(symbols, device, options).ms, is_feasible};
  return SymbolCode(outputs);
}

double pruner_latency_ms(const ir::Program& program, const PrunerDevice& device,
                         const PrunerOptions& options) {
  ParamSpace space(program.domain());
  const NestTable table(program, space);
  const std::vector<StatementSymbols> symbols = pruner_symbols(table, device);
  return pruner_latency(symbols, device, options).ms.value();
}

}  // namespace prunerc::costmodel
