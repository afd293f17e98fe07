// Buffers by the position of an access in its block, and what is known of their layout.
#ifndef PRUNERC_SCHEDULE_REWRITE_BUFFER_H_
#define PRUNERC_SCHEDULE_REWRITE_BUFFER_H_

#include "ir/program.h"
#include "ir/support/result.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace prunerc::schedule {

/// The buffer of the `index`-th access among the block's reads or writes. Errors: AccessIndexRange.
Result<ir::BufferId> accessed_buffer(const ir::Block& block, std::span<const ir::Access> accesses,
                                     int64_t index);
/// Errors: BufferNotIntermediate.
Result<void> check_intermediate(const ir::Program& program, ir::BufferId buffer);
/// The `index`-th written buffer, an intermediate. Errors: AccessIndexRange, BufferNotIntermediate.
Result<ir::Buffer> written_intermediate(const ir::Program& program, const ir::Block& block,
                                        int64_t index);

/// The value of an attribute by which some writer of the buffer asks for a layout: `prefix` is
/// kAlignFactor or kSwizzle.
std::optional<int64_t> layout_attr(const ir::Program& program, ir::BufferId buffer,
                                   std::string_view prefix);

/// Is it read or written where no block says so: between blocks, in a guard or where loops are bound?
bool accessed_outside_blocks(const ir::Program& program, ir::BufferId buffer);

/// Constant shape of a buffer; empty optional if it has another.
std::optional<std::vector<int64_t>> constant_shape(const ir::Buffer& buffer);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_REWRITE_BUFFER_H_
