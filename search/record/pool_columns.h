// Columns of numbers as bytes: what a pool's rows become before compression, and back with every
// length checked.
#ifndef PRUNERC_SEARCH_RECORD_POOL_COLUMNS_H_
#define PRUNERC_SEARCH_RECORD_POOL_COLUMNS_H_

#include "search/record/pool.h"

#include <string>
#include <string_view>

namespace prunerc::search {

/// Column by column, since like stands beside like there.
std::string encode_rows(const Pool& pool);
/// Rows of one pool, and decisions of all its rows together: 400 MiB of them at most.
inline constexpr std::size_t kMaxPoolRows = std::size_t{1} << 20;
inline constexpr std::size_t kMaxPoolDecisions = std::size_t{1} << 22;
/// Fills pool->rows of at most kMaxPoolRows; else what keeps the bytes from being `num_rows` rows of
/// the pool's sketches. Cost: as the bytes, whatever they claim.
const char* decode_rows(std::string_view bytes, std::size_t num_rows, Pool* pool);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_POOL_COLUMNS_H_
