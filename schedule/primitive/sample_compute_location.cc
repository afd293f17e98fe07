// sample_compute_location(@P, [-2, -1, 0, 1]): one of the codes that stand for a legal place now.
// Needs: one of the codes is legal (compute_at_location.cc). After: the program as it is; the trace
// has the codes that were legal when it was drawn (DESIGN.md, D20).
//   sample_compute_location(@B0, [-2, -1, 0, 1])
// ~>
//   sample_compute_location(@B0, [-2, -1, 0, 1]) -> v0 = [0]
#include "schedule/rewrite/sample.h"
#include "schedule/rewrite/site.h"

#include <algorithm>

namespace prunerc::schedule {

using ir::Program;

template <>
Result<DecisionSpace> space_of<PrimitiveKind::kSampleComputeLocation>(const Program& program,
                                                                      const Call& call) {
  PRUNERC_TRY_VOID(find_block(program, call.block(0)));
  DecisionSpace space;
  space.primitive = PrimitiveKind::kSampleComputeLocation;
  const std::vector<int64_t> listed = call.integers(1);
  for (const int64_t code : compute_locations(program, call.block(0))) {
    if (std::find(listed.begin(), listed.end(), code) != listed.end()) {
      space.values.push_back(code);
    }
  }
  if (space.values.empty()) return error(Diag::kLocationStale, call.block(0));
  space.weights.assign(space.values.size(), 1);
  return space;
}

template <>
Result<Applied> run<PrimitiveKind::kSampleComputeLocation>(const Program& program,
                                                           const Call& call) {
  return run_sample(program, PrimitiveKind::kSampleComputeLocation, call);
}

}  // namespace prunerc::schedule
