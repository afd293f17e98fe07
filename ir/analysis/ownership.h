// Does each thread of a kernel find in its registers (scope local) what it reads there?
#ifndef PRUNERC_IR_ANALYSIS_OWNERSHIP_H_
#define PRUNERC_IR_ANALYSIS_OWNERSHIP_H_

#include "ir/arith/prove.h"
#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <string>

namespace prunerc::ir {

/// kNo: some thread certainly reads what it has not written.
struct OwnershipCheck {
  Proof proof = Proof::kYes;
  BufferId buffer;     // unless kYes
  std::string reason;  // unless kYes
};

/// An element of scope local is one register in each thread. Whoever reads it must have written it
/// last, in the same kernel, whichever loops of the kernel the two stand in; that is: for each axis
/// of blocks and threads around the write the read has the same index. Code outside of an axis runs
/// in every thread along it; the result of a reduction across threads is given to all of them.
/// Virtual threads are one thread's. The CPU's loops do not matter.
///
/// First all pairs of writes and reads are asked whether they meet at different indices
/// (carried.h); if they may, accesses are replayed in order, as far as `max_points` of them reach.
OwnershipCheck check_ownership(const Program& program,
                               const ProveOptions& options = {.max_points = 1'000'000});

/// What becomes of a program of which nothing is shown.
enum class Doubt : uint8_t { kRefused, kAllowed };
/// Errors: ThreadOwner.
Result<void> check_thread_ownership(const Program& program, Doubt doubt = Doubt::kRefused);

}  // namespace prunerc::ir

#endif  // PRUNERC_IR_ANALYSIS_OWNERSHIP_H_
