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
/// Fills pool->rows; false if the bytes are not `num_rows` rows of the pool's sketches.
bool decode_rows(std::string_view bytes, std::size_t num_rows, Pool* pool);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_POOL_COLUMNS_H_
