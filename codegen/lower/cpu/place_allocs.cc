// Intermediates get their Allocs.
// Before: the program has none. After: each intermediate has one, around all its accesses, but
// outside of loops that carry values in it and of vectorized loops.
//     for i in 8 {
//       for j in 4 { block "T" [vi: S(8) = i, vj: S(4) = j] { T[vi, vj] = A[vi, vj] } }
//       for j in 4 { block "B" [vi: S(8) = i, vj: S(4) = j] { B[vi, vj] = T[vi, vj] } } }
// ~>  for i in 8 { alloc T { for j in 4 { block "T" .. }  for j in 4 { block "B" .. } } }
#include "codegen/lower/analysis/alloc_points.h"
#include "codegen/lower/passes.h"

namespace prunerc::codegen {

Result<ir::Program> place_allocs(const ir::Program& program, const ir::Target&) {
  ir::IrBuilder b(program);
  return b.finish(insert_allocs(b, program, find_alloc_points(program)));
}

}  // namespace prunerc::codegen
