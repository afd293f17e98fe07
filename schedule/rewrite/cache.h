// A copy of a whole buffer beside a block: what cache_read, cache_write and cache_inplace share.
#ifndef PRUNERC_SCHEDULE_REWRITE_CACHE_H_
#define PRUNERC_SCHEDULE_REWRITE_CACHE_H_

#include "schedule/legality/dataflow.h"
#include "schedule/primitive.h"

#include <cstddef>
#include <cstdint>

namespace prunerc::schedule {

/// Where a copy stands: before the block (the block reads it), after it, or both.
enum class CacheKind : uint8_t { kRead, kWrite, kInplace };

/// What a cache primitive asks of the block at `place` and of the buffer that it caches.
using CacheCheck = Result<void>(const Dataflow& flow, std::size_t place, const ir::Buffer& buffer);

/// The copy has the buffer's full shape and stands beside the outermost statement that holds the
/// block; (reverse_)compute_at moves it and shrinks it to what is needed there (DESIGN.md, D13).
/// Operands: block, index of the access, scope. Errors: BlockNotFound, BlockNested, BlockUnderIf,
/// AccessIndexRange, ScopeUnknown, RegionNotSolved; those of `check`.
Result<Applied> run_cache(const ir::Program& program, const Call& call, CacheKind kind,
                          CacheCheck* check);

/// Some write of the block at `place` certainly writes every element of the buffer. An output is
/// written whole by its only writer.
bool writes_all(const Dataflow& flow, std::size_t place, const ir::Buffer& buffer);
Error not_all_written(const ir::Block& block, const ir::Buffer& buffer);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_CACHE_H_
