// The lowering passes: each takes a program and gives one with the same meaning, one step closer to
// machine code. A pass is the function NAME in codegen/lower/{common,cpu,gpu}/NAME.cc, where its
// picture is; pipeline.cc says in which order they run.
#ifndef PRUNERC_CODEGEN_LOWER_PASSES_H_
#define PRUNERC_CODEGEN_LOWER_PASSES_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"

namespace prunerc::codegen {

using PassFunction = Result<ir::Program>(const ir::Program&, const ir::Target&);

// common/

/// Initialisation leaves the blocks of reductions.
PassFunction lower_init;
/// Blocks become their bodies.
PassFunction lower_blocks;
/// Intermediates shrink to what is accessed below their Allocs.
PassFunction compact_buffers;
/// Index arithmetic in normal form, conditions decided from ranges.
PassFunction simplify_expressions;

// cpu/

/// Tiles that a mask makes nothing of do not run.
PassFunction skip_masked;
/// Intermediates get their Allocs.
PassFunction place_allocs;
/// Sums over a vectorized loop get one accumulator per lane.
PassFunction privatize_reductions;
/// Running reductions keep the element before in registers.
PassFunction carry_scans;
/// Updates that change nothing where a condition fails run behind the condition.
PassFunction branch_updates;
/// Conditions leave loops, so that whole tiles run without them.
PassFunction hoist_guards;
/// Loops that index small stack buffers are unrolled, so that these become registers.
PassFunction unroll_register_tiles;
/// Whole vectors run in the tail of a tile, where what the masked lanes would write is dead.
PassFunction unmask_vector_tails;

// gpu/

/// Changes nothing. Errors: ThreadOwner (a thread reads registers that another one wrote).
PassFunction check_register_ownership;
/// Loops over tiles begin and end where a mask hides the others from the whole block.
PassFunction trim_masked_loops;
/// Reductions over threads become partial results that shuffles and shared memory combine.
/// Errors: Unsupported (a reducer that is not known to combine; a guard that relates its loops with
/// others).
PassFunction lower_cross_thread_reductions;
/// Each thread loop stands around one phase. Errors: ThreadKernel (a loop around phases whose
/// length depends on the thread).
PassFunction distribute_thread_loops;
/// Intermediates get their Allocs, and the scope that follows from the place.
PassFunction place_gpu_allocs;
/// Registers shrink to what one thread touches, without gaps.
PassFunction compact_registers;
/// Rows of shared buffers get the padding that storage_align has asked for.
PassFunction pad_shared_rows;
/// Code on fragments of tensor instructions, and on values of their rows, runs in the lanes that hold the elements.
/// Errors: ThreadKernel (indices that no loop over whole tiles gives; several lanes would store in one element), those of
/// find_fragments and find_row_buffers.
PassFunction distribute_fragments;
/// What bulk copies bring gets a ring buffer. Errors: ThreadKernel (bulk copies that do not stand
/// in a serial loop, whose iterations they serve).
PassFunction multibuffer_bulk_copies;
/// Fetches into shared memory run iterations ahead, as software_pipeline allows.
PassFunction pipeline_loops;
/// One thread does what a statement outside of the thread loops stores in memory.
PassFunction guard_uniform_stores;
/// Pieces of rows in shared memory ask a mask once for all lanes of a warp.
PassFunction branch_masked_tiles;
/// Barriers where a thread may touch what another one touched since the last one.
/// Errors: ThreadKernel (a barrier in code that only some threads reach).
PassFunction insert_barriers;

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_PASSES_H_
