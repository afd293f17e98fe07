// Databases that are only looked at: also those that this process may not write.
#include "ir/support/file.h"
#include "search/record/database.h"
#include "search/record/sqlite.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <utility>

namespace prunerc::search {
namespace {

constexpr int kBusyTimeoutMs = 10000;

bool has_current_schema(sqlite3* db, const std::string& path) {
  Result<Query> query = Query::prepare(db, path, "PRAGMA user_version");
  if (!query.ok()) return false;
  const Result<bool> found = query->step();
  return found.ok() && *found && query->int_column() == kDatabaseSchema;
}

}  // namespace

Result<Database> Database::open_to_read(const std::string& path) {
  if (is_export(path)) return read_lines(path);
  std::error_code ignored;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  const bool may_come = folder.empty() || std::filesystem::is_directory(folder, ignored);
  if (path == ":memory:" || (may_come && !std::filesystem::exists(path, ignored))) {
    PRUNERC_TRY(Database empty, open(":memory:"));
    empty.path_ = path;
    return empty;
  }
  PRUNERC_TRY_VOID(check_database_files(path));
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  Database db(handle, path);
  if (code == SQLITE_OK) {
    harden(handle);
    sqlite3_busy_timeout(handle, kBusyTimeoutMs);
    if (has_current_schema(handle, path)) {
      PRUNERC_TRY_VOID(check_tables(handle, path));
      return db;
    }
  }
  // An older schema, or a log that takes a writer to read: in place if that may be written, else in
  // a copy.
  Result<Database> writable = open(path);
  if (writable.ok()) return writable;
  const Diag id = writable.error().id();
  if (id != Diag::kDatabaseOpen && id != Diag::kDatabaseQuery) return writable;
  Result<Database> copy = copy_into_memory(path);
  return copy.ok() ? std::move(copy) : std::move(writable);
}

Result<Database> Database::read_lines(const std::string& path) {
  PRUNERC_TRY(std::string text, read_file(path));
  PRUNERC_TRY(Database db, open(":memory:"));
  std::istringstream lines(std::move(text));
  PRUNERC_TRY_VOID(db.import_lines(lines, path));
  PRUNERC_TRY_VOID(execute(db.db_.get(), path, "PRAGMA query_only = ON"));
  db.path_ = path;
  return db;
}

Result<Database> Database::copy_into_memory(const std::string& path) {
  std::error_code code, ignored;
  const std::filesystem::path base = std::filesystem::temp_directory_path(code);
  if (code)
    return error(Diag::kIoError, std::string("find"), std::string("TMPDIR"), code.message());
  std::string folder = (base / "prunerc-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) {
    return error(Diag::kIoError, std::string("write"), folder, std::string(std::strerror(errno)));
  }
  const std::string copy = folder + "/db.sqlite";
  const uint64_t bytes = std::filesystem::file_size(path, ignored);
  if (!ignored && bytes > kMaxReadBytes) {
    std::filesystem::remove_all(folder, ignored);
    return error(Diag::kTooMany, "'" + path + "'", bytes_text(bytes), bytes_text(kMaxReadBytes));
  }
  std::filesystem::copy_file(path, copy, code);
  if (!code && std::filesystem::exists(path + "-wal", ignored)) {
    std::filesystem::copy_file(path + "-wal", copy + "-wal", code);
  }
  std::filesystem::permissions(copy, std::filesystem::perms::owner_write,
                               std::filesystem::perm_options::add, ignored);
  Result<Database> db = code ? error(Diag::kIoError, std::string("read"), path, code.message())
                             : in_memory(copy, path);
  std::filesystem::remove_all(folder, ignored);
  return db;
}

Result<Database> Database::in_memory(const std::string& copy, const std::string& path) {
  PRUNERC_TRY(const Database from, open(copy));
  PRUNERC_TRY(Database to, open(":memory:"));
  sqlite3_backup* const backup = sqlite3_backup_init(to.db_.get(), "main", from.db_.get(), "main");
  const int code = backup == nullptr ? SQLITE_ERROR : sqlite3_backup_step(backup, -1);
  sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE) return sqlite_error(to.db_.get(), path);
  PRUNERC_TRY_VOID(execute(to.db_.get(), path, "PRAGMA query_only = ON"));
  to.path_ = path;
  return to;
}

}  // namespace prunerc::search
