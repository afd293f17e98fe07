// Databases of others: what SQLite must not do for them, and whether their tables are ours.
#include "search/record/sqlite.h"

#include <sqlite3.h>
#include <sys/stat.h>

#include <map>
#include <memory>

namespace prunerc::search {
namespace {

/// By name, what sqlite_schema says of it: its type and the statement that made it.
using Schema = std::map<std::string, std::string>;

struct CloseHandle {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};

// How a statement is laid out changes from build to build.
std::string without_layout(const std::string& sql) {
  std::string out;
  for (const char c : sql) {
    const bool is_space = c == ' ' || c == '\n' || c == '\t' || c == '\r';
    if (!is_space) out += c;
    if (is_space && !out.empty() && out.back() != ' ') out += ' ';
  }
  return out;
}

Result<Schema> schema_of(sqlite3* db, const std::string& path) {
  PRUNERC_TRY(Query query, Query::prepare(db, path,
                                          "SELECT name, type, sql FROM sqlite_schema "
                                          "WHERE substr(name, 1, 7) <> 'sqlite_'"));
  Schema schema;
  while (true) {
    PRUNERC_TRY(const bool more, query.step());
    if (!more) return schema;
    std::string name = query.text_column();
    std::string text = query.text_column();
    text += ' ' + without_layout(query.text_column());
    schema.emplace(std::move(name), std::move(text));
  }
}

Result<Schema> schema_by(std::span<const char* const> migrations) {
  constexpr const char* kInMemory = ":memory:";
  sqlite3* handle = nullptr;
  const int code = sqlite3_open(kInMemory, &handle);
  const std::unique_ptr<sqlite3, CloseHandle> db(handle);
  if (code != SQLITE_OK) {
    return error(Diag::kDatabaseOpen, std::string(kInMemory), std::string("out of memory"));
  }
  for (const char* const step : migrations) PRUNERC_TRY_VOID(execute(handle, kInMemory, step));
  return schema_of(handle, kInMemory);
}

std::string type_of(const std::string& entry) { return entry.substr(0, entry.find(' ')); }

}  // namespace

Result<void> check_database_files(const std::string& path) {
  if (path == ":memory:") return {};
  for (const char* const suffix : {"", "-wal", "-shm", "-journal"}) {
    const std::string file = path + suffix;
    struct stat found = {};
    if (::stat(file.c_str(), &found) != 0 || S_ISREG(found.st_mode)) continue;
    return error(Diag::kFileKind, file,
                 std::string(S_ISDIR(found.st_mode)    ? "a folder"
                             : S_ISFIFO(found.st_mode) ? "a pipe"
                             : S_ISSOCK(found.st_mode) ? "a socket"
                                                       : "a device"));
  }
  return {};
}

void harden(sqlite3* db) {
  constexpr std::pair<int, int> kSwitches[] = {
      {SQLITE_DBCONFIG_DEFENSIVE, 1},      {SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0},
      {SQLITE_DBCONFIG_ENABLE_VIEW, 0},    {SQLITE_DBCONFIG_ENABLE_TRIGGER, 0},
      {SQLITE_DBCONFIG_DQS_DDL, 0},        {SQLITE_DBCONFIG_DQS_DML, 0},
      {SQLITE_DBCONFIG_WRITABLE_SCHEMA, 0}};
  for (const auto& [name, value] : kSwitches) sqlite3_db_config(db, name, value, nullptr);
  constexpr std::pair<int, int> kLimits[] = {
      {SQLITE_LIMIT_LENGTH, 64 << 20},   {SQLITE_LIMIT_SQL_LENGTH, 1 << 16},
      {SQLITE_LIMIT_COLUMN, 64},         {SQLITE_LIMIT_EXPR_DEPTH, 64},
      {SQLITE_LIMIT_COMPOUND_SELECT, 8}, {SQLITE_LIMIT_ATTACHED, 0},
      {SQLITE_LIMIT_TRIGGER_DEPTH, 1},   {SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 1024}};
  for (const auto& [name, value] : kLimits) sqlite3_limit(db, name, value);
  constexpr int kStepsBetweenChecks = 1000;
  sqlite3_progress_handler(
      db, kStepsBetweenChecks, [](void*) { return take_steps(kStepsBetweenChecks); }, nullptr);
}

Result<void> check_schema(sqlite3* db, const std::string& path,
                          std::span<const char* const> migrations) {
  PRUNERC_TRY(const Schema wanted, schema_by(migrations));
  PRUNERC_TRY(const Schema found, schema_of(db, path));
  if (found == wanted) return {};
  const auto differs = [&](const std::string& what) {
    return error(Diag::kDatabaseCorrupt, path, what);
  };
  for (const auto& [name, entry] : found) {
    const auto known = wanted.find(name);
    if (known == wanted.end()) {
      return differs("it holds a " + type_of(entry) + " '" + name + "', which is not ours");
    }
    if (known->second == entry) continue;
    return differs("its " + type_of(entry) + " '" + name + "' is not the " +
                   type_of(known->second) + " that prunerc makes");
  }
  return differs("it lacks a table");
}

}  // namespace prunerc::search
