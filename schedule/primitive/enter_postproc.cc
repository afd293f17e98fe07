// enter_postproc(): ends the part of a trace that a search mutates and replays.
// Needs: nothing. After: the program as it is.
//   split(@L0, [v0, v1]) -> @L3, @L4
// ~>
//   split(@L0, [v0, v1]) -> @L3, @L4
//   enter_postproc()
#include "schedule/primitive.h"

namespace prunerc::schedule {

using ir::Program;

template <>
Result<Applied> run<PrimitiveKind::kEnterPostproc>(const Program& program, const Call&) {
  return Applied{program, {}, {}};
}

}  // namespace prunerc::schedule
