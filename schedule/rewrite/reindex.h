// A copy with one element per instance of a block: what reindex, reindex_cache_read and
// reindex_cache_write share.
#ifndef PRUNERC_SCHEDULE_REWRITE_REINDEX_H_
#define PRUNERC_SCHEDULE_REWRITE_REINDEX_H_

#include "schedule/primitive.h"

#include <cstdint>
#include <string>

namespace prunerc::schedule {

enum class Side : uint8_t { kRead, kWrite };

struct ReindexArgs {
  ir::BlockId block;
  Side side;
  int64_t index;
  std::string scope;
  std::string map;  // from the block's variables to the copy's subscripts; "": themselves
};

/// The copy has one element for each value of the variables in the subscripts. It is a nest of its
/// own beside the outermost statement that holds the block, as with cache_read and cache_write.
///
/// The block stands in no other block and accesses the buffer with one tuple of subscripts over its
/// variables; the map uses the same variables and is injective on them. Read: the block does not
/// write the buffer; writers come in earlier statements; each instance reads, and all of the domain
/// runs, unless the buffer is an input and the subscripts stay inside of it. Write: the block is
/// the sole writer, its instances may be reordered, all of its domain runs, it is one store, and
/// nobody in the same statement reads the buffer.
/// Errors: ReindexForm, AccessIndexRange, ScopeUnknown, BlockNotSimple, BlockProducerLate,
/// CacheReaderInside, BlockOrderFixed, BlockNoInit, those of the map.
Result<Applied> run_reindex(const ir::Program& program, const ReindexArgs& args);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_REINDEX_H_
