// Index arithmetic in normal form, conditions decided from ranges.
// Before: expressions as passes have made them. After: sums of products, by which later passes
// compare indices and which emission prints.
//     for i in 4 { if i*2 < 8 { B[i + i] = A[(i*8 + 3) // 8] } }
// ~>  for i in 4 { B[i*2] = A[i] }
#include "codegen/lower/passes.h"
#include "ir/arith/simplify.h"

namespace prunerc::codegen {

Result<ir::Program> simplify_expressions(const ir::Program& program, const ir::Target&) {
  return ir::simplify(program);
}

}  // namespace prunerc::codegen
