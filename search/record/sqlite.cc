#include "search/record/sqlite.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <limits>
#include <utility>

namespace prunerc::search {
namespace {

// Of the statement that this thread is in; null outside of Query and execute.
thread_local int64_t* steps_left = nullptr;

class Bounded {
 public:
  explicit Bounded(int64_t* steps) : outer_(std::exchange(steps_left, steps)) {}
  Bounded(const Bounded&) = delete;
  Bounded& operator=(const Bounded&) = delete;
  ~Bounded() { steps_left = outer_; }

 private:
  int64_t* outer_;
};

Error takes_too_much(const std::string& path) {
  return error(Diag::kDatabaseCorrupt, path,
               std::string("reading it takes more than a file of its size can need"));
}

}  // namespace

int take_steps(int64_t steps) {
  if (steps_left == nullptr) return 0;
  *steps_left -= steps;
  return *steps_left < 0 ? 1 : 0;
}

Effort effort_for(const std::string& path) {
  // A row takes some tens of steps and of bytes; the rest is for queries that visit it many times.
  constexpr int64_t kLeastSteps = 10'000'000, kStepsPerByte = 32;
  constexpr int64_t kLeastTextBytes = int64_t{32} << 20, kTextPerByte = 4;
  int64_t file_bytes = 0;
  for (const char* const suffix : {"", "-wal"}) {
    struct stat found = {};
    if (::stat((path + suffix).c_str(), &found) == 0) file_bytes += found.st_size;
  }
  // In memory there is what this process put there.
  if (file_bytes == 0)
    return {std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()};
  return {kLeastSteps + kStepsPerByte * file_bytes, kLeastTextBytes + kTextPerByte * file_bytes};
}

Error sqlite_error(sqlite3* db, const std::string& path) {
  const int code = sqlite3_errcode(db);
  const std::string text = sqlite3_errmsg(db);
  const bool damaged = code == SQLITE_CORRUPT || code == SQLITE_NOTADB;
  return error(damaged ? Diag::kDatabaseCorrupt : Diag::kDatabaseQuery, path, text);
}

void Query::Finalize::operator()(sqlite3_stmt* stmt) const { sqlite3_finalize(stmt); }

Result<Query> Query::prepare(sqlite3* db, const std::string& path, std::string_view sql) {
  sqlite3_stmt* stmt = nullptr;
  // Preparing the first one reads the schema.
  Effort effort = effort_for(path);
  const Bounded bounded(&effort.steps);
  const int code = sqlite3_prepare_v2(db, sql.data(), static_cast<int>(sql.size()), &stmt, nullptr);
  if (effort.steps < 0) return takes_too_much(path);
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
  const Bounded bounded(&left_.steps);
  const int code = sqlite3_step(stmt_.get());
  if (left_.steps < 0 || left_.text_bytes < 0) return takes_too_much(path_);
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
  left_ = effort_for(path_);
}

int64_t Query::int_column() { return sqlite3_column_int64(stmt_.get(), next_column_++); }
double Query::double_column() { return sqlite3_column_double(stmt_.get(), next_column_++); }

std::string Query::text_column() {
  const int column = next_column_++;
  const unsigned char* text = sqlite3_column_text(stmt_.get(), column);
  const int size = sqlite3_column_bytes(stmt_.get(), column);
  if (text == nullptr) return {};
  left_.text_bytes -= size;
  return std::string(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
}

Result<void> execute(sqlite3* db, const std::string& path, const char* sql) {
  Effort effort = effort_for(path);
  const Bounded bounded(&effort.steps);
  const int code = sqlite3_exec(db, sql, nullptr, nullptr, nullptr);
  if (effort.steps < 0) return takes_too_much(path);
  if (code != SQLITE_OK) return sqlite_error(db, path);
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
