// Version of the lines that databases exchange, independent of the file's schema.
#ifndef PRUNERC_SEARCH_RECORD_LINE_SCHEMA_H_
#define PRUNERC_SEARCH_RECORD_LINE_SCHEMA_H_

namespace prunerc::search {

inline constexpr int kLineSchema = 1;

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_LINE_SCHEMA_H_
