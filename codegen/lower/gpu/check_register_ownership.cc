// Changes nothing: asks whether every thread finds in its registers what it reads there.
// Before: buffers of scope local are declared as one for all threads. After: each thread reads only
// elements that it wrote itself, so that each may have its own part of them.
//     for t in 32 bind(thread.x) { L[t] = A[t] }
//     for t in 32 bind(thread.x) { B[t] = L[t] }        L[31 - t] would be refused
#include "codegen/lower/passes.h"
#include "ir/analysis/ownership.h"

namespace prunerc::codegen {

Result<ir::Program> check_register_ownership(const ir::Program& program, const ir::Target&) {
  PRUNERC_TRY_VOID(ir::check_thread_ownership(program));
  return program;
}

}  // namespace prunerc::codegen
