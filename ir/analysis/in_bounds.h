// Does every access stay inside of its buffer, whatever the inputs hold? Asked of programs that people wrote, before
// anything of them runs.
#ifndef PRUNERC_IR_ANALYSIS_IN_BOUNDS_H_
#define PRUNERC_IR_ANALYSIS_IN_BOUNDS_H_

#include "ir/arith/prove.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <optional>
#include <string>

namespace prunerc::ir {

/// An access, or the binding of an iteration variable, that is not shown to stay inside.
struct LooseAccess {
  Proof proof = Proof::kUnknown;  // kNo: it certainly leaves
  std::string what;               // "index vi + 1 of dimension 0 of 'A' may be 1 to 64, ..."
};

/// The first access of `program` that is not proved to stay inside; nullopt if all are. Values of
/// buffers may be anything of their type, so that a subscript made of data needs a condition
/// around it: `select(0 <= n && n < 64, A[n], 0f32)`. Selects, `&&`, `||`, ifs and guards count
/// where they stand; conditions on buffers that the program writes count in expressions alone.
/// Cost: a few proofs an access.
std::optional<LooseAccess> find_loose_access(const Program& program);

/// The same as a diagnostic: what is not proved is refused. Errors: ProgramInvalid.
Result<void> verify_in_bounds(const Program& program);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_IN_BOUNDS_H_
