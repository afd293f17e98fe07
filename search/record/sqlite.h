// A prepared statement and a transaction as values, and what SQLite must not do for databases of
// others.
#ifndef PRUNERC_SEARCH_RECORD_SQLITE_H_
#define PRUNERC_SEARCH_RECORD_SQLITE_H_

#include "ir/support/result.h"

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace prunerc::search {

/// The error of the last call on `db` as a diagnostic: DatabaseCorrupt for damaged files, else
/// DatabaseQuery.
Error sqlite_error(sqlite3* db, const std::string& path);

/// Steps of SQLite's machine and bytes of text that one statement may take: of a damaged or forged
/// file it could take any number, since its pages may stand for each other.
struct Effort {
  int64_t steps = 0;
  int64_t text_bytes = 0;
};
/// Far above what a file of that size needs.
Effort effort_for(const std::string& path);
/// Counts steps against the statement that this thread is in; 1 once they are too many.
int take_steps(int64_t steps);

/// Whether the path, its log and its journal are regular files, or absent. Errors: FileKind.
Result<void> check_database_files(const std::string& path);
/// For databases of others: views, triggers and functions of the schema do not run, texts,
/// expressions and statements have bounds, and statements of Query end with DatabaseCorrupt after
/// their effort. To be called before anything is read.
void harden(sqlite3* db);
/// Whether the database holds the tables that these steps make, but for layout in the same words,
/// and nothing else but what SQLite adds. No steps: whether it holds nothing. Errors:
/// DatabaseCorrupt, which names what is there instead.
Result<void> check_schema(sqlite3* db, const std::string& path,
                          std::span<const char* const> migrations);
/// The same for the tables of this build.
Result<void> check_tables(sqlite3* db, const std::string& path);

/// One statement. Parameters are bound in order; columns are read in order.
class Query {
 public:
  static Result<Query> prepare(sqlite3* db, const std::string& path, std::string_view sql);

  Query& bind(int64_t value);
  Query& bind(double value);
  Query& bind(const std::string& value);

  /// True if there is a row to read. Errors: DatabaseQuery, DatabaseCorrupt.
  Result<bool> step();
  /// For statements without rows.
  Result<void> run();
  /// Makes the statement ready for new parameters.
  void reset();

  int64_t int_column();
  double double_column();
  std::string text_column();

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* stmt) const;
  };
  Query(sqlite3* db, sqlite3_stmt* stmt, std::string path)
      : db_(db), stmt_(stmt), path_(std::move(path)), left_(effort_for(path_)) {}

  sqlite3* db_;
  std::unique_ptr<sqlite3_stmt, Finalize> stmt_;
  std::string path_;
  int next_parameter_ = 1;
  int next_column_ = 0;
  Effort left_;
};

/// Runs statements that take no parameters and give no rows.
Result<void> execute(sqlite3* db, const std::string& path, const char* sql);

/// Rolls back unless committed.
class Transaction {
 public:
  static Result<Transaction> begin(sqlite3* db, const std::string& path);
  Transaction(Transaction&& other) noexcept
      : db_(std::exchange(other.db_, nullptr)), path_(std::move(other.path_)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  Result<void> commit();

 private:
  Transaction(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  sqlite3* db_;
  std::string path_;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_RECORD_SQLITE_H_
