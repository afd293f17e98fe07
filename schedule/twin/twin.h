// A scheduled program's small twin: the same trace on the same operator with few and short loops,
// for the verifier.
#ifndef PRUNERC_SCHEDULE_TWIN_TWIN_H_
#define PRUNERC_SCHEDULE_TWIN_TWIN_H_

#include "ir/program.h"
#include "ir/support/result.h"
#include "schedule/trace/trace.h"

#include <cstdint>
#include <vector>

namespace prunerc::schedule {

struct TwinOptions {
  /// A base that costs at most so much is its own twin, one of eight times as much if no smaller
  /// one takes the trace; a larger one gets tile sizes cut down until each of the two programs
  /// does, as far as that goes. Units: see cost_of.
  int64_t max_cost = 100'000;
};

/// Two programs that the trace leads from one to the other.
struct Twin {
  ir::Program base;
  ir::Program scheduled;
  /// On the way, before and after each step that rounds elsewhere (trace/trace.h).
  std::vector<ir::Program> around;
  bool is_true_shape = false;
};

/// Shrinks `base` and replays `trace` on it. Each axis keeps the sizes of its innermost tiles, has
/// three of what its outermost split makes (two, if it was split again), and divides or does not as
/// the original; sampled sizes are cut down where there would be too many points, and products of
/// warpgroups get fewer columns (narrow.h).
/// Errors: Unsupported; those of the primitives, where the trace does not fit the small shape.
Result<Twin> make_twin(const ir::Program& base, const Trace& trace,
                       const TwinOptions& options = {});

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_TWIN_TWIN_H_
