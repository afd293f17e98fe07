// cache_inplace(@B, 0, "local"): a block that updates a buffer works on a copy (rewrite/cache.h).
// Needs: @B reads and writes the buffer, nobody else in its outermost statement touches it, and an
// earlier statement writes every element. After: a copy in, @B on the copy alone, a copy out.
//   for i in 8 { block @B [v: S(8) = i] { T[v] = T[v]*2f32 } }
// ~>
//   for ax0 in 8 { block "T_local" @B1 [v0: S(8) = ax0] { T_local[v0] = T[v0] } }
//   for i in 8 { block @B [v: S(8) = i] { T_local[v] = T_local[v]*2f32 } }
//   for ax0 in 8 { block "T_local_out" @B2 [v0: S(8) = ax0] { T[v0] = T_local[v0] } }
#include "schedule/rewrite/cache.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

Result<void> check(const Dataflow& flow, std::size_t place, const Buffer& buffer) {
  const Block& block = *flow[place].block;
  if (!writes(block, buffer.id)) {
    return error(Diag::kBlockNotSimple, block.id, std::string("write what it reads"));
  }
  bool whole = false;
  for (std::size_t other = 0; other < flow.blocks().size(); ++other) {
    const bool touches =
        reads(*flow[other].block, buffer.id) || writes(*flow[other].block, buffer.id);
    if (other == place || !touches) continue;
    if (flow.same_statement(other, place)) {
      return error(Diag::kCacheReaderInside, flow[other].block->id, std::string(buffer.name));
    }
    whole = whole || (other < place && writes_all(flow, other, buffer));
  }
  if (!whole) return not_all_written(block, buffer);
  return {};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kCacheInplace>(const Program& program, const Call& call) {
  return run_cache(program, call, CacheKind::kInplace, check);
}

}  // namespace prunerc::schedule
