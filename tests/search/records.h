// Databases of a test and records without a kernel.
#ifndef PRUNERC_TESTS_SEARCH_RECORDS_H_
#define PRUNERC_TESTS_SEARCH_RECORDS_H_

#include "search/record/database.h"

#include <string>

namespace prunerc::testing {

/// A path of this process where no database is.
std::string fresh_path(const std::string& name);
search::Database open_or_die(const std::string& path);

/// All lines, or the best ones, as `db export` writes them; reads such lines again.
std::string lines_of(search::Database& db, search::Export which = search::Export::kAll);
Result<search::ImportCounts> import_text(search::Database& db, const std::string& text);

/// Number n of a task's candidates, ok and with three samples.
search::Record make_record(int64_t n, double median_ns, bool verified = true);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SEARCH_RECORDS_H_
