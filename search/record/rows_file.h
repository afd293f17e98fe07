// A rows file: which rows of which pools train and which test, so that a split or a pruned set can
// be used again and passed on.
#ifndef PRUNERC_SEARCH_RECORD_ROWS_FILE_H_
#define PRUNERC_SEARCH_RECORD_ROWS_FILE_H_

#include "ir/support/result.h"
#include "search/record/corpus.h"

#include <span>
#include <string>

namespace prunerc::search {

/// {"schema": "prunerc.rows/1", "pools": [{"path", "op", "rows", "train": [..], "test": [..]}]}.
/// Paths are kept relative to the file's folder. Errors: IoError.
Result<void> write_rows(const Corpus& corpus, const Split& split, const std::string& path);

struct Selection {
  Corpus corpus;
  Split split;
};

/// From pools and rows files, in any order; all rows of a pool train and test. Errors: RowsFile if
/// a file is no such text, or names rows that a pool does not have; PoolTwice if a pool comes
/// twice, or a copy of it; those of read_corpus.
Result<Selection> read_selection(std::span<const std::string> paths);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_ROWS_FILE_H_
