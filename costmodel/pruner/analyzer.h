// Pruner's latency formulas (Qiao et al., ASPLOS 2025): as published and as released.
#ifndef PRUNERC_COSTMODEL_PRUNER_ANALYZER_H_
#define PRUNERC_COSTMODEL_PRUNER_ANALYZER_H_

#include "costmodel/cost_model.h"
#include "costmodel/pruner/device.h"
#include "costmodel/pruner/symbols.h"

#include <memory>
#include <span>

namespace prunerc::costmodel {

/// The penalties of one statement, as factors of a rate, in (0, 1]; 1: none.
struct PrunerPenalties {
  double registers = 1;     // l0,m: capacity of the register file
  double reuse = 1;         // l0,c: operations per access of a thread
  double shared = 1;        // l1,m: capacity of shared memory
  double warps = 1;         // l1,c: threads that do not fill warps
  double waves = 1;         // l2,c: blocks that do not fill the device
  double transactions = 1;  // l2,m: bytes that are moved and not used
};

/// One statement's share of the latency.
struct PrunerTerm {
  ir::BufferId buffer;
  PrunerPenalties penalties;
  double compute_ms = 0;
  double memory_ms = 0;
};

struct PrunerLatency {
  double ms = 0;
  std::vector<PrunerTerm> terms;
};

enum class PrunerVersion : uint8_t {
  /// What the published code computes: penalties of computation only (the register file's among
  /// them), traffic in elements, the larger part of each statement; a statement with arithmetic has
  /// no traffic.
  kRelease,
  /// What the paper says: all six penalties, each on its side, traffic in bytes, the sum of both
  /// parts (equation 1). Symbols 2 and 3 and the forms of l1,m and l2,m are our reading of it.
  kPaper,
};

/// Cost: O(statements).
PrunerLatency pruner_latency(std::span<const StatementSymbols> statements,
                             const PrunerDevice& device, PrunerVersion version);

/// Scores programs by 1 / latency in ms: higher is faster, as released.
std::unique_ptr<CostModel> make_pruner_model(PrunerVersion version, const PrunerDevice& device);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_PRUNER_ANALYZER_H_
