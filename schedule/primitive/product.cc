// product([v0, v1]): the value that several decisions have together, for a later operand.
// Needs: factors from 1 on whose product stays far from overflow. After: the program as it is.
//   product([v0, v1])
// ~>
//   product([v0, v1]) -> v2
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

namespace prunerc::schedule {

using ir::Program;

template <>
Result<Applied> run<PrimitiveKind::kProduct>(const Program& program, const Call& call) {
  int64_t product = 1;
  for (const int64_t factor : call.integers(0)) {
    if (factor < 1 || factor > kMaxExtent / product) {
      return error(Diag::kProductRange, kMaxExtent);
    }
    product *= factor;
  }
  return Applied{program, {}, {product}};
}

}  // namespace prunerc::schedule
