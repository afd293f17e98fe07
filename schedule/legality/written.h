// Is all that is read, and all that is given back, written? For programs that people wrote.
#ifndef PRUNERC_SCHEDULE_LEGALITY_WRITTEN_H_
#define PRUNERC_SCHEDULE_LEGALITY_WRITTEN_H_

#include "ir/program.h"
#include "ir/support/result.h"

namespace prunerc::schedule {

/// An intermediate whose accesses all stand in one loop lives for one iteration of it, unless a
/// reduction carries values in it: lowering gives each iteration storage of its own. Refused is a
/// read of an element that certainly nothing in its iteration writes; what is not decided passes.
/// Errors: ProgramInvalid. Cost: a proof, at worst some thousand points, for each load.
Result<void> verify_lifetimes(const ir::Program& program);

/// Refused are outputs of which the first or last elements of a dimension are certainly never
/// written. Errors: ProgramInvalid.
Result<void> verify_outputs_written(const ir::Program& program);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_WRITTEN_H_
