// Do the regions that blocks declare contain what their bodies touch? What people write by hand is
// checked here, since every primitive relies on it.
#ifndef PRUNERC_IR_ANALYSIS_DECLARED_H_
#define PRUNERC_IR_ANALYSIS_DECLARED_H_

#include "ir/arith/prove.h"
#include "ir/program.h"
#include "ir/support/result.h"

namespace prunerc::ir {

/// One answer for all blocks: kYes if every access is proved to lie in its block's declared regions
/// of the same kind (several regions of one buffer count by their hull; a reduction need not
/// declare that it reads its accumulator), kNo if some certainly does not. `culprit` and `buffer`
/// name the first that is not proved. kNo also, naming none, if a guard or a binding reads a buffer,
/// or a buffer that is no input is accessed in blocks and outside of them. Cost: one region analysis
/// a block.
Proof check_declared_regions(const Program& program, BlockId* culprit = nullptr,
                             BufferId* buffer = nullptr);

/// The same as a diagnostic: only what is certainly wrong is refused.
/// Errors: VerifyUndeclaredAccess, VerifyStructure.
Result<void> verify_declared_regions(const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_DECLARED_H_
