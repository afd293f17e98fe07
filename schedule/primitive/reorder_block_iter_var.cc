// reorder_block_iter_var(@B, [1, 0]): the block declares its variables in another order. Needs: the
// order names each position once. After: the same instances; only the declaration differs.
//   block @B [vi: S(4) = i, vj: S(8) = j] { T[vi, vj] = X[vi, vj] }
// ~>
//   block @B [vj: S(8) = j, vi: S(4) = i] { T[vi, vj] = X[vi, vj] }
#include "schedule/primitive.h"
#include "schedule/rewrite/site.h"

#include <vector>

namespace prunerc::schedule {

using namespace ir;  // NOLINT(google-build-using-namespace)

template <>
Result<Applied> run<PrimitiveKind::kReorderBlockIterVar>(const Program& program, const Call& call) {
  PRUNERC_TRY(const Site site, find_block(program, call.block(0)));
  const std::vector<int64_t> order = call.integers(1);
  const std::span<const IterVar> iters = site.block()->iters;
  const int64_t n = static_cast<int64_t>(iters.size());
  if (static_cast<int64_t>(order.size()) != n) {
    return error(Diag::kPermutationInvalid, n, static_cast<int64_t>(order.size()));
  }
  std::vector<bool> seen(iters.size(), false);
  std::vector<IterVar> reordered;
  for (const int64_t position : order) {
    if (position < 0 || position >= n || seen[static_cast<std::size_t>(position)]) {
      return error(Diag::kPermutationInvalid, n, position);
    }
    seen[static_cast<std::size_t>(position)] = true;
    reordered.push_back(iters[static_cast<std::size_t>(position)]);
  }
  IrBuilder b(program);
  Block copy = *site.block();
  copy.iters = reordered;
  return Applied{b.finish(replace_at(b, site, b.block(copy))), {}, {}};
}

}  // namespace prunerc::schedule
