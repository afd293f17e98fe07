// sample_categorical([1, 2, 4], [1, 1, 2]): one of the values, by relative weights.
// Needs: as many weights as values, none negative, not all 0.
// After: the program as it is; the decision is the index of the value.
//   sample_categorical([1, 2, 4], [1, 1, 2])
// ~>
//   sample_categorical([1, 2, 4], [1, 1, 2]) -> v0 = [2]
#include "schedule/rewrite/sample.h"

namespace prunerc::schedule {

using ir::Program;

template <>
Result<DecisionSpace> space_of<PrimitiveKind::kSampleCategorical>(const Program&,
                                                                  const Call& call) {
  DecisionSpace space;
  space.values = call.integers(0);
  space.weights = call.integers(1);
  int64_t total = 0;
  bool fits = space.values.size() == space.weights.size();
  for (const int64_t weight : space.weights) {
    fits = fits && weight >= 0 && !__builtin_add_overflow(total, weight, &total);
  }
  if (!fits || total == 0) {
    return error(Diag::kCategoricalWeights, static_cast<int64_t>(space.values.size()));
  }
  return space;
}

template <>
Result<Applied> run<PrimitiveKind::kSampleCategorical>(const Program& program, const Call& call) {
  PRUNERC_TRY(const DecisionSpace space,
              decided_space(program, PrimitiveKind::kSampleCategorical, call));
  return Applied{program, {}, {space.values[static_cast<std::size_t>((*call.decision)[0])]}};
}

}  // namespace prunerc::schedule
