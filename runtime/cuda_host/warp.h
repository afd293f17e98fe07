// What the 32 threads of a warp compute together: shuffles, and matrices spread over their
// registers.
#ifndef PRUNERC_RUNTIME_CUDA_HOST_WARP_H_
#define PRUNERC_RUNTIME_CUDA_HOST_WARP_H_

#include "runtime/cuda_host/block.h"

namespace prunerc::runtime::cuda_host {

/// Checks what `thread` brings to a collective, and tells the checkers of its accesses to memory.
void note_operands(Thread& thread, const PrHostCollective& op);

/// Executes what all lanes brought (Thread::op), with the layouts of the PTX manual.
void run_collective(Warp& warp);

/// The 16-bit floats, as bits.
float f16_to_f32(uint16_t bits);
float bf16_to_f32(uint16_t bits);

}  // namespace prunerc::runtime::cuda_host

#endif  // PRUNERC_RUNTIME_CUDA_HOST_WARP_H_
