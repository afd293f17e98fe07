// The symbols of Pruner's analyzer, read off a scheduled program: numbers, or expressions over a
// sketch's tile parameters.
#ifndef PRUNERC_COSTMODEL_PRUNER_SYMBOLS_H_
#define PRUNERC_COSTMODEL_PRUNER_SYMBOLS_H_

#include "costmodel/latency/nest.h"
#include "costmodel/pruner/device.h"
#include "ir/program.h"

#include <cstdint>
#include <vector>

namespace prunerc::costmodel {

/// One written buffer. Units are elements and operations, not bytes, as in the release; what only
/// the paper has stands apart. S1 .. S8 are the paper's names as far as they are known.
struct StatementSymbols {
  ir::BufferId buffer;
  Sym flops_per_thread;  // additions, subtractions, products, quotients; a MAC is two
  Sym flops;             // S8: of all threads
  Sym registers;         // S1: elements that one thread's tile of the result needs at once
  Sym accesses;          // of one thread
  Sym shared;            // what the threads of a block fetch in all
  Sym dram;              // elements from or to global memory, of all blocks
  Sym reuse = 1;         // alpha: 1 + operations per access
  Sym blocks = 1, threads = 1, vthreads = 1;  // S6, S4

  Sym dram_bytes;    // S5
  Sym shared_bytes;  // S3: of the block's tile at one time
  Sym useful_bytes;  // S7: of one access of a warp to global memory (CPU: of a task's tiles) ..
  Sym transferred_bytes;  // .. in whole transactions; 0: none

  // Of tensor instructions: our reading, since what the paper has of them was never published.
  Sym fragment_bytes;  // of an element of the operands; 0: no tensor instruction
  Sym aligned = 1;     // part of a warp's tile, its extents rounded up to fragments of 16
};

/// Statements in order of their first store; a buffer that is stored several times keeps the last
/// store's symbols, and the sum of all accesses. Pruner's source walks lowered loops before storage is
/// flattened; a scheduled program has the same loops and subscripts. Cost: O(size of the program).
std::vector<StatementSymbols> pruner_symbols(const NestTable& table, const PrunerDevice& device);

/// Of one nest on a CPU; `before`: what is known of the buffer that it stores to.
StatementSymbols cpu_symbols(const NestTable& table, const Nest& nest, const PrunerDevice& device,
                             const StatementSymbols& before);

/// Float additions, subtractions, products and quotients of one instance. Comparisons and calls are
/// not counted.
double count_pruner_ops(const Nest& nest);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_PRUNER_SYMBOLS_H_
