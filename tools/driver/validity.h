// Whether a program may run at all: what is asked of every program that people wrote, before anything of it runs.
#ifndef PRUNERC_TOOLS_DRIVER_VALIDITY_H_
#define PRUNERC_TOOLS_DRIVER_VALIDITY_H_

#include "ir/program.h"
#include "ir/support/result.h"

namespace prunerc {

/// Refuses a program that leaves its buffers for some input (ir/analysis/in_bounds.h: what is not
/// proved is refused), and one that reads what was never written, leaves an output element out,
/// races, or leaves an iteration's extent: these are found by running it in finite fields, whole if
/// it is small, else at the corners of its outputs. Texts of the operator language are proved
/// valid when they are compiled. Errors: ProgramInvalid. Cost: of programs that are run whole about a second; of
/// others that of search::check_programs at up to 8 corners of each output, which may be some ten seconds.
Result<void> check_valid(const ir::Program& program);

}  // namespace prunerc

#endif  // PRUNERC_TOOLS_DRIVER_VALIDITY_H_
