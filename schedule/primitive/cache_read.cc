// cache_read(@C, 0, "shared"): the block reads its first buffer through a copy (rewrite/cache.h).
// Needs: @C stands in no other block and does not write the buffer, of which every element is
// written by a block of an earlier outermost statement (or it is an input). After: the copy has
// final values.
//   for j in 8 { block @C [v: S(8) = j] { Y[v] = T[v] } }
// ~>
//   for ax0 in 8 { block "T_shared" @B1 [v0: S(8) = ax0] { T_shared[v0] = T[v0] } }
//   for j in 8 { block @C [v: S(8) = j] { Y[v] = T_shared[v] } }
#include "schedule/rewrite/cache.h"

#include <string>

namespace prunerc::schedule {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace)

Result<void> check(const Dataflow& flow, std::size_t place, const Buffer& buffer) {
  const Block& block = *flow[place].block;
  if (writes(block, buffer.id)) {
    return error(Diag::kBlockNotSimple, block.id, std::string("not write what it caches"));
  }
  if (buffer.role == BufferRole::kInput) return {};
  bool whole = false;
  for (const std::size_t writer : flow.writers(buffer.id)) {
    if (writer > place || flow.same_statement(writer, place)) {
      return error(Diag::kBlockProducerLate, block.id, flow[writer].block->id);
    }
    whole = whole || writes_all(flow, writer, buffer);
  }
  if (!whole) return not_all_written(block, buffer);
  return {};
}

}  // namespace

template <>
Result<Applied> run<PrimitiveKind::kCacheRead>(const Program& program, const Call& call) {
  return run_cache(program, call, CacheKind::kRead, check);
}

}  // namespace prunerc::schedule
