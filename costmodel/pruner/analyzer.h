// Pruner's latency formulas (Qiao et al., ASPLOS 2025): as published and as released.
#ifndef PRUNERC_COSTMODEL_PRUNER_ANALYZER_H_
#define PRUNERC_COSTMODEL_PRUNER_ANALYZER_H_

#include "costmodel/pruner/device.h"
#include "costmodel/pruner/symbols.h"
#include "costmodel/symbol/code.h"

#include <memory>
#include <span>

namespace prunerc::costmodel {

/// The penalties of one statement, as factors of a rate, in (0, 1]; 1: none.
struct PrunerPenalties {
  Sym registers = 1;     // l0,m: capacity of the register file
  Sym reuse = 1;         // l0,c: operations per access of a thread
  Sym shared = 1;        // l1,m: capacity of shared memory
  Sym warps = 1;         // l1,c: threads that do not fill warps
  Sym waves = 1;         // l2,c: blocks that do not fill the device
  Sym transactions = 1;  // l2,m: bytes that are moved and not used
  Sym alignment = 1;     // of tensor instructions: a warp's tile that does not fill fragments
};

/// One statement's share of the latency.
struct PrunerTerm {
  ir::BufferId buffer;
  PrunerPenalties penalties;
  Sym compute_ms;
  Sym memory_ms;
};

struct PrunerLatency {
  Sym ms;
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

/// What is left out to see what it is worth: a penalty that is off is 1.
struct PrunerOptions {
  PrunerVersion version = PrunerVersion::kRelease;
  bool registers = true, reuse = true, shared = true, warps = true, waves = true,
       transactions = true, alignment = true;
  bool memory = true;  // the memory part of every statement
};

/// Cost: O(statements).
PrunerLatency pruner_latency(std::span<const StatementSymbols> statements,
                             const PrunerDevice& device, const PrunerOptions& options);

/// Batch evaluation over a sketch's parameters; outputs: ms, and whether the domain's constraints
/// hold.
SymbolCode derive_pruner(const ir::Program& sketch, const PrunerDevice& device,
                         const PrunerOptions& options);

/// Of a program without parameters.
double pruner_latency_ms(const ir::Program& program, const PrunerDevice& device,
                         const PrunerOptions& options);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_PRUNER_ANALYZER_H_
