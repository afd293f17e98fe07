#include "search/record/sqlite.h"

#include <sqlite3.h>

namespace prunerc::search {

Error sqlite_error(sqlite3* db, const std::string& path) {
  const int code = sqlite3_errcode(db);
  const std::string text = sqlite3_errmsg(db);
  const bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  return error(damaged ? Diag::kDatabaseCorrupt : Diag::kDatabaseQuery, path, text);
}

void Query::Finalize::operator()(sqlite3_stmt* stmt) const { sqlite3_finalize(stmt); }

Result<Query> Query::prepare(sqlite3* db, const std::string& path, std::string_view sql) {
  sqlite3_stmt* stmt = nullptr;
  const int code = sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &stmt, nullptr);
  if (code != SQLITE_OK) return sqlite_error(db, path);
  return Query(db, stmt, path);
}

Query& Query::bind(int64_t value) {
  sqlite3_bind_int64(stmt_.get(), next_parameter_++, value);
  return *this;
}

Query& Query::bind(double value) {
  sqlite3_bind_double(stmt_.get(), next_parameter_++, value);
  return *this;
}

Query& Query::bind(const std::string& value) {
  sqlite3_bind_text64(stmt_.get(), next_parameter_++, value.data(), value.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
  return *this;
}

Result<bool> Query::step() {
  next_column_ = 0;
  const int code = sqlite3_step(stmt_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return sqlite_error(db_, path_);
}

Result<void> Query::run() {
  PRUNERC_TRY_VOID(step());
  reset();
  return {};
}

void Query::reset() {
  sqlite3_reset(stmt_.get());
  sqlite3_clear_bindings(stmt_.get());
  next_parameter_ = 1;
}

int64_t Query::int_column() { return sqlite3_column_int64(stmt_.get(), next_column_++); }
double Query::double_column() { return sqlite3_column_double(stmt_.get(), next_column_++); }

std::string Query::text_column() {
  const int column = next_column_++;
  const unsigned char* text = sqlite3_column_text(stmt_.get(), column);
  const int size = sqlite3_column_bytes(stmt_.get(), column);
  if (text == nullptr) return {};
  return std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
}

Result<void> execute(sqlite3* db, const std::string& path, const char* sql) {
  if (sqlite3_exec(db, sql, nullptr, nullptr, nullptr) != SQLITE_OK) return sqlite_error(db, path);
  return {};
}

Result<Transaction> Transaction::begin(sqlite3* db, const std::string& path) {
  // Immediate: a reader that upgrades later could find its snapshot outdated and fail without
  // waiting.
  PRUNERC_TRY_VOID(execute(db, path, "BEGIN IMMEDIATE"));
  return Transaction(db, path);
}

Transaction::~Transaction() {
  if (db_ != nullptr) sqlite3_exec(db_, "ROLLBACK", nullptr, nullptr, nullptr);
}

Result<void> Transaction::commit() {
  PRUNERC_TRY_VOID(execute(db_, path_, "COMMIT"));
  db_ = nullptr;
  return {};
}

}  // namespace prunerc::search
