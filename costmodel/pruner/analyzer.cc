#include "costmodel/pruner/analyzer.h"

#include <algorithm>
#include <cmath>

namespace prunerc::costmodel {
namespace {

constexpr double kGibi = 1073741824.0;

// Part of the places that are taken when `units` come in rounds of `places`.
double filled(double units, double places) { return units / (std::ceil(units / places) * places); }

// Blocks over multiprocessors. With fewer blocks than those, warps over their partitions.
double waves(const StatementSymbols& s, const PrunerDevice& device) {
  const double at_once = device.num_sms * device.blocks_per_sm;
  if (s.blocks >= at_once) return filled(s.blocks, at_once);
  const double warps = std::ceil(s.threads / device.warp_size);
  return filled(s.blocks * std::min(warps, device.partitions_per_sm),
                device.partitions_per_sm * device.num_sms);
}

PrunerPenalties common_penalties(const StatementSymbols& s, const PrunerDevice& device) {
  PrunerPenalties p;
  const double warps = s.threads / device.warp_size;
  p.warps = warps / std::ceil(warps);
  p.waves = waves(s, device);
  p.reuse = s.reuse / (1 + s.reuse);
  p.registers = std::min(1.0, device.registers_per_thread / std::max(1.0, s.registers));
  return p;
}

PrunerTerm release_term(const StatementSymbols& s, const PrunerDevice& device) {
  PrunerTerm term{s.buffer, common_penalties(s, device), 0, 0};
  const PrunerPenalties& p = term.penalties;
  const double rate = device.peak_gflops * p.waves * p.warps * p.registers * p.reuse;
  term.compute_ms = s.flops / rate / 1e6;
  // Elements over bytes per second: as published.
  term.memory_ms = s.dram * 1000 / (device.bandwidth_gb_s * kGibi);
  return term;
}

PrunerTerm paper_term(const StatementSymbols& s, const PrunerDevice& device) {
  PrunerTerm term{s.buffer, common_penalties(s, device), 0, 0};
  PrunerPenalties& p = term.penalties;
  if (device.shared_bytes_per_sm > 0 && s.shared_bytes > 0)
    p.shared = std::min(1.0, device.shared_bytes_per_sm / s.shared_bytes);
  if (s.transferred_bytes > 0) p.transactions = std::min(1.0, s.useful_bytes / s.transferred_bytes);
  const double compute_rate = device.peak_gflops * p.reuse * p.warps * p.waves;
  const double memory_rate = device.bandwidth_gb_s * p.registers * p.shared * p.transactions;
  term.compute_ms = s.flops / compute_rate / 1e6;
  term.memory_ms = s.dram_bytes / memory_rate / 1e6;
  return term;
}

class PrunerModel : public CostModel {
 public:
  PrunerModel(PrunerVersion version, const PrunerDevice& device)
      : version_(version), device_(device) {}

  void predict(std::span<const ModelInput> inputs, std::span<Score> scores) const override {
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      const std::vector<StatementSymbols> symbols =
          pruner_symbols(*inputs[i].program, static_cast<int64_t>(device_.transaction_bytes));
      const double ms = pruner_latency(symbols, device_, version_).ms;
      scores[i] = {ms > 0 ? 1 / ms : 0, 0, ms * 1e6};
    }
  }

  Result<std::unique_ptr<CostModel>> updated(std::span<const Sample>,
                                             const FitOptions&) const override {
    return std::unique_ptr<CostModel>();
  }

 private:
  const PrunerVersion version_;
  const PrunerDevice device_;
};

}  // namespace

PrunerLatency pruner_latency(std::span<const StatementSymbols> statements,
                             const PrunerDevice& device, PrunerVersion version) {
  PrunerLatency out;
  for (const StatementSymbols& s : statements) {
    const bool is_release = version == PrunerVersion::kRelease;
    const PrunerTerm term = is_release ? release_term(s, device) : paper_term(s, device);
    out.ms +=
        is_release ? std::max(term.compute_ms, term.memory_ms) : term.compute_ms + term.memory_ms;
    out.terms.push_back(term);
  }
  return out;
}

std::unique_ptr<CostModel> make_pruner_model(PrunerVersion version, const PrunerDevice& device) {
  return std::make_unique<PrunerModel>(version, device);
}

}  // namespace prunerc::costmodel
