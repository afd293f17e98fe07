// An analytic estimate of how long a scheduled program runs on a CPU: arithmetic, loads, caches,
// threads.
#ifndef PRUNERC_COSTMODEL_LATENCY_ROOFLINE_H_
#define PRUNERC_COSTMODEL_LATENCY_ROOFLINE_H_

#include "ir/program.h"
#include "ir/target.h"

namespace prunerc::costmodel {

/// Units: ns of the whole program, summed over its nests; parts of one overlap (DESIGN.md, D6).
struct LatencyEstimate {
  double total_ns = 0;
  double core_ns = 0;     // instructions, had every access hit L1
  double l2_ns = 0;       // traffic between L1 and L2
  double l3_ns = 0;       // traffic between L2 and L3
  double memory_ns = 0;   // traffic between L3 and memory
  double latency_ns = 0;  // waiting for lines that no prefetcher brought
  double launch_ns = 0;   // starting parallel loops
  /// Statement instances in the emitted code: unrolled copies times vectors.
  double code_size = 0;
  /// Vector registers that the largest accumulator tile needs.
  double max_tile_registers = 0;
};

/// Cost: about 70 us for a tiled matrix product. Finite and positive for every program that
/// verifies.
LatencyEstimate estimate_latency(const ir::Program& program, const ir::Target& target);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_ROOFLINE_H_
