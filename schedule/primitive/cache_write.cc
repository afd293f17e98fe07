// cache_write(@P, 0, "local"): the block writes its first buffer through a copy (rewrite/cache.h).
// Needs: @P stands in no other block, is the sole writer and writes every element; nobody in the
// same outermost statement reads the buffer. After: the copy out comes when all values are final.
//   for i in 8 { block @P [v: S(8) = i] { Y[v] = X[v] } }
// ~>
//   for i in 8 { block @P [v: S(8) = i] { Y_local[v] = X[v] } }
//   for ax0 in 8 { block "Y_local_out" @B1 [v0: S(8) = ax0] { Y[v0] = Y_local[v0] } }
#include "schedule/rewrite/cache.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

Result<void> check(const Dataflow& flow, std::size_t place, const Buffer& buffer) {
  const Block& block = *flow[place].block;
  PRUNERC_TRY_VOID(check_sole_writer(flow, place));
  for (const std::size_t reader : flow.readers(buffer.id)) {
    if (reader == place || !flow.same_statement(reader, place)) continue;
    return error(Diag::kCacheReaderInside, flow[reader].block->id, std::string(buffer.name));
  }
  if (!writes_all(flow, place, buffer)) return not_all_written(block, buffer);
  return {};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kCacheWrite>(const Program& program, const Call& call) {
  return run_cache(program, call, CacheKind::kWrite, check);
}

}  // namespace prunerc::schedule
