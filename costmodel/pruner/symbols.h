// The symbols of Pruner's analyzer, read off a scheduled program.
#ifndef PRUNERC_COSTMODEL_PRUNER_SYMBOLS_H_
#define PRUNERC_COSTMODEL_PRUNER_SYMBOLS_H_

#include "ir/program.h"

#include <cstdint>
#include <vector>

namespace prunerc::costmodel {

/// One written buffer. Units are elements and operations, not bytes, as in the release; what only
/// the paper has stands apart. S1 .. S8 are the paper's names as far as they are known.
struct StatementSymbols {
  ir::BufferId buffer;
  double flops_per_thread = 0;  // additions, subtractions, products, quotients; a MAC is two
  double flops = 0;             // S8: of all threads
  double registers = 0;         // S1: elements that one thread's tile of the result needs at once
  double accesses = 0;          // of one thread
  double shared = 0;            // what the threads of a block fetch in all
  double dram = 0;              // elements from or to global memory, of all blocks
  double reuse = 1;             // alpha: 1 + operations per access
  double blocks = 1, threads = 1, vthreads = 1;  // S6, S4

  double dram_bytes = 0;         // S5
  double shared_bytes = 0;       // S3: of the block's tile at one time
  double useful_bytes = 0;       // S7: of one access of a warp to global memory ..
  double transferred_bytes = 0;  // .. in whole transactions; 0: none
};

/// Statements in order of their first store; a buffer that is stored several times keeps the last
/// store's symbols, and the sum of all accesses. `transaction_bytes` is what global memory moves at
/// once. Pruner's source walks lowered loops before storage is flattened; a scheduled program has
/// the same loops and subscripts. Cost: O(size of the program) and 64 subscripts per access.
std::vector<StatementSymbols> pruner_symbols(const ir::Program& scheduled,
                                             int64_t transaction_bytes = 32);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_PRUNER_SYMBOLS_H_
