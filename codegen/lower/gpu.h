// Lowering passes for GPUs: they come beside those of lower.h and speak of kernels (kernel.h).
#ifndef PRUNERC_CODEGEN_LOWER_GPU_H_
#define PRUNERC_CODEGEN_LOWER_GPU_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"

namespace prunerc::codegen {

/// The program itself, if every thread finds in its registers what it reads there.
/// Errors: ThreadOwner.
Result<ir::Program> check_owners(const ir::Program& program, const ir::Target& target);

/// Gives each thread of a cross-thread reduction a partial result and combines them: by shuffles
/// inside of warps, through shared memory between them, by a tree in shared memory otherwise.
///     for k in 64 bind(thread.x) { block [i, k: R] { C[i] += A[i, k] } }
/// ~>  for t { P[t, i] = 0 }  for t { P[t, i] += A[i, t] }
///     for t {shuffle = 16} { P[t, i] += P[t + 16, i] } ..  for t { if (t % 32 == 0) S[t // 32, i]
///     = P[t, i] }  for w in 2 { C[i] += S[w, i] }
/// Several results (argmax) combine as a tuple does: cross_thread_tuple.cc.
/// Errors: Unsupported (a reducer that is not known to combine; a guard that relates its loops with
/// others).
Result<ir::Program> lower_cross_thread(const ir::Program& program, const ir::Target& target);

/// Makes each thread loop stand around one phase: nothing is left in it between which threads meet.
///     for y bind(thread.y) { for x bind(thread.x) { T[x] = .. }  for x { .. T[0] } }
/// ~>  for y { for x { T[y, x] = .. } }  for y { for x { .. T[y, 0] } }
/// What the threads of a row share gets one copy per row. Errors: ThreadKernel (a loop around
/// phases whose length depends on the thread).
Result<ir::Program> distribute_threads(const ir::Program& program, const ir::Target& target);

/// Allocs as place_buffers makes them, and the scope that follows from the place: inside of a
/// thread's iteration local, inside of a block shared (or one tile per thread, if declared local),
/// else global.
Result<ir::Program> place_gpu_buffers(const ir::Program& program, const ir::Target& target);

/// Lengthens the rows of shared buffers as storage_align has asked for, against bank conflicts.
Result<ir::Program> align_shared(const ir::Program& program, const ir::Target& target);

/// Shrinks buffers of scope local to what one thread touches, without gaps. Those that live in
/// several thread loops get the thread as leading dimensions, so that the program keeps its
/// meaning; the emitter drops them.
///     for v in 2 bind(vthread.x) { for t in 16 bind(thread.x) { for i in 4 { L[v * 64 + t * 4 + i]
///     } } }
/// ~>  .. L[t, v * 4 + i]
Result<ir::Program> compact_registers(const ir::Program& program, const ir::Target& target);

/// Lets each lane of a warp do what is done to the elements of tensor operands that it holds.
///     for i in 16 { for j in 8 { Y[i, j] = C[i, j] } }  with C the result of mma_m16n8k16
/// ~>  for l in 32 bind(thread.x) { for r in 2 { for e in 2 { Y[r * 8 + l // 4, l % 4 * 2 + e] = ..
/// } } } Errors: ThreadKernel (indices that no loop over whole tiles gives), those of
/// find_fragments.
Result<ir::Program> spread_fragments(const ir::Program& program, const ir::Target& target);

/// Lets fetches into shared memory run iterations ahead, as software_pipeline allows: pipelines.cc.
Result<ir::Program> lower_pipelines(const ir::Program& program, const ir::Target& target);

/// Gives what bulk copies bring a ring of places: rings.cc. Errors: ThreadKernel (bulk copies that
/// do not stand in a serial loop, whose iterations they serve).
Result<ir::Program> lower_rings(const ir::Program& program, const ir::Target& target);

/// Lets one thread of each axis do what a statement outside of the axis' loops stores in shared or
/// global memory: `for t bind(thread.x) { if (t == 0) .. }`.
Result<ir::Program> lower_uniform_stores(const ir::Program& program, const ir::Target& target);

/// Puts barriers where a thread may touch what another one touched since the last barrier, one of
/// them writing: attribute `sync` of the loop before whose iterations the threads meet. Memory is
/// planned before that, so buffers that share bytes count as one.
/// Errors: ThreadKernel (a barrier in code that only some threads reach).
Result<ir::Program> insert_barriers(const ir::Program& program, const ir::Target& target);

/// The lowered program for print_cuda, without conditions in the tiles that a thread computes where
/// they do not matter or do not change (gpu_guards.cc). No program to check: it may read elements
/// that were never written, for results that nobody reads.
ir::Program leave_out_guards(const ir::Program& lowered);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_GPU_H_
