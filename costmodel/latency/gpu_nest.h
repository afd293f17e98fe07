// What one nest of a kernel asks of a multiprocessor's units, for one block.
#ifndef PRUNERC_COSTMODEL_LATENCY_GPU_NEST_H_
#define PRUNERC_COSTMODEL_LATENCY_GPU_NEST_H_

#include "costmodel/latency/nest.h"

#include <array>

namespace prunerc::costmodel {

/// Units: of one block and all its threads, unless they say otherwise.
struct GpuNestCost {
  Sym warp_instructions = 0;
  Sym fma_lanes = 0;             // multiply-adds of f32, lanes that stand idle included
  Sym special_lanes = 0;         // exponentials, reciprocals, roots
  Sym tensor_macs = 0;           // multiply-adds of tensor instructions, in those of f16
  Sym warp_macs = 0;             // of these, by instructions of one warp: mma.sync and wmma
  Sym shared_wavefronts = 0;     // of 128 bytes each, of shared memory and L1
  Sym load_lanes = 0;            // loads and stores of shared memory and L1, by lane
  Sym l2_bytes = 0;              // whole sectors
  Sym memory_bytes = 0;          // of these, its share of what the blocks of a wave ask for once
  Sym latency_cycles = 0;        // of one thread that runs alone
  Sym fetched_instructions = 0;  // of the first, code that no partition keeps
  Sym code_size = 1;             // statement instances that the schedule writes out
};

/// Global memory moves sectors of this size.
inline constexpr double kSectorBytes = 32;

/// Blocks along x, y and z that run at the same time.
using GpuWave = std::array<Sym, 3>;

/// `code_bytes` of code are kept beside a partition.
GpuNestCost gpu_nest_cost(const NestTable& table, const Nest& nest, const GpuWave& wave,
                          double code_bytes);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_GPU_NEST_H_
