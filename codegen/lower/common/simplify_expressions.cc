// Index arithmetic in normal form, conditions decided from ranges.
// Before and after: any program. Later passes compare indices, and emission prints what is left.
//     for i in 4 { if i*2 < 8 { B[i + i + 0] = A[(i*8 + 3) // 8] } }
// ~>  for i in 4 { B[i*2] = A[i] }
#include "codegen/lower/passes.h"
#include "ir/analysis/simplify.h"

namespace prunerc::codegen {

Result<ir::Program> simplify_expressions(const ir::Program& program, const ir::Target&) {
  return ir::simplify(program);
}

}  // namespace prunerc::codegen
