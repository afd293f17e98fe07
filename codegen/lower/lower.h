// The lowering passes: each takes a program and gives one with the same meaning, one step closer to
// machine code.
#ifndef PRUNERC_CODEGEN_LOWER_LOWER_H_
#define PRUNERC_CODEGEN_LOWER_LOWER_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "ir/target.h"

namespace prunerc::codegen {

/// Takes the initialisation out of reduction blocks.
///     for i { for k { block [i, k: R] { init C[i] = 0; C[i] += A[i, k] } } }
/// ~>  for i { block { C[i] = 0 }  for k { block [i, k: R] { C[i] += A[i, k] } } }
/// Where the reduction's loops do not allow that, the block tests whether all its reduction
/// iterations are 0.
Result<ir::Program> lower_init(const ir::Program& program, const ir::Target& target);

/// Gives each intermediate buffer its Alloc: around all its accesses, but outside of loops that
/// carry values in it (those of reductions) and of vectorized loops (whose lanes need an element
/// each).
Result<ir::Program> place_buffers(const ir::Program& program, const ir::Target& target);

/// Replaces blocks by their bodies: iteration variables by their bindings, guards by conditions.
///     block [v: S = i * 4 + j] where i < 3 { T[v] = A[v] }  ~>  if (i < 3) { T[i * 4 + j] = A[i *
///     4 + j] }
Result<ir::Program> lower_blocks(const ir::Program& program, const ir::Target& target);

/// Shrinks each intermediate to the hull of what is accessed below its Alloc.
///     for i { alloc T[64, 64] { for j { T[i, j] = .. } } }  ~>  for i { alloc T[1, 64] { for j {
///     T[0, j] = .. } } }
Result<ir::Program> compact_buffers(const ir::Program& program, const ir::Target& target);

/// Gives a sum over a vectorized inner and a serial outer loop one accumulator per lane.
///     for ko { for ki in 16 vectorized { S[i] += A[ko * 16 + ki] } }
/// ~>  alloc P[16] { vec P = 0;  for ko { vec P += A[..] };  S[i] += sum(P) }
Result<ir::Program> privatize_reductions(const ir::Program& program, const ir::Target& target);

/// Moves conditions out of loops so that whole tiles run without them.
///     for i { for ii in 4 unrolled { if (i * 4 + ii < 10) S } }
/// ~>  for i { if (i * 4 + 3 < 10) { for ii { S } } else { for ii { if (i * 4 + ii < 10) S } } }
/// A condition of a serial loop's own variable becomes a shorter extent.
Result<ir::Program> hoist_guards(const ir::Program& program, const ir::Target& target);

/// Unrolls the loops that index small stack buffers, so that these become registers.
Result<ir::Program> unroll_tiles(const ir::Program& program, const ir::Target& target);

/// Index arithmetic in normal form, conditions decided from ranges.
Result<ir::Program> simplify_lowered(const ir::Program& program, const ir::Target& target);

/// Lets all lanes of a vector run where its first one does, if what the others write is read by
/// nobody: no blends in the tail of a tile.
///     alloc T[16] { for i in 16 vectorized { if (i < 12) { T[i] = A[k + i] } } .. }
/// ~>  alloc T[16] { for i in 16 vectorized { T[i] = select(i < 12, A[k + i], 0) } .. }
Result<ir::Program> fill_lanes(const ir::Program& program, const ir::Target& target);

}  // namespace prunerc::codegen

#endif  // PRUNERC_CODEGEN_LOWER_LOWER_H_
