// Well-formedness of a program: what every pass and primitive may rely on.
#ifndef PRUNERC_IR_VERIFY_H_
#define PRUNERC_IR_VERIFY_H_

#include "ir/program.h"
#include "ir/support/result.h"

namespace prunerc::ir {

/// Checks scopes (a variable is used inside its loop or block; a block's inside sees only its
/// iteration variables and inner loops), unique ids, known buffers, that inputs are not written,
/// positive constant extents, that a block declares every buffer it touches, and the nesting and
/// extents of thread axes (thread_axis.h). Whether declared regions contain the accesses is
/// ir/analysis' concern. Errors: Verify*, LoopNestedParallel, ThreadAxisExtent. Cost: O(size).
Result<void> verify(const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_VERIFY_H_
