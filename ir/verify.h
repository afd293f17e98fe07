// Well-formedness of a program: what every pass and primitive may rely on.
#ifndef PRUNERC_IR_VERIFY_H_
#define PRUNERC_IR_VERIFY_H_

#include "ir/program.h"
#include "ir/support/result.h"

namespace prunerc::ir {

/// Checks scopes (a variable is used inside its loop or block; a block's inside sees only its
/// iteration variables and inner loops), unique ids, known buffers, that inputs are not written,
/// positive constant extents, and that a block declares every buffer it touches. Whether declared
/// regions contain the accesses is ir/analysis' concern. Errors: Verify*. Cost: O(size).
Result<void> verify(const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_VERIFY_H_
