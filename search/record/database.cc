#include "search/record/database.h"

#include "ir/parser.h"
#include "ir/support/file.h"
#include "ir/support/hash.h"
#include "ir/target.h"
#include "schedule/trace/trace.h"
#include "search/record/sqlite.h"

#include <sqlite3.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>

namespace prunerc::search {
namespace {

constexpr int kBusyTimeoutMs = 10000;

// Step i brings a file of schema i to schema i + 1; the first makes an empty file usable.
constexpr const char* kMigrations[] = {
    R"sql(
      CREATE TABLE task (
        id INTEGER PRIMARY KEY, hash TEXT NOT NULL, program TEXT NOT NULL, target TEXT NOT NULL,
        name TEXT NOT NULL, op_text TEXT NOT NULL, bindings TEXT NOT NULL);
      CREATE INDEX task_by_hash ON task (hash);
      CREATE TABLE record (
        id INTEGER PRIMARY KEY, task INTEGER NOT NULL REFERENCES task (id),
        fingerprint TEXT NOT NULL, sketch TEXT NOT NULL, trace TEXT NOT NULL,
        status TEXT NOT NULL, median_ns REAL NOT NULL, spread REAL NOT NULL, samples TEXT NOT NULL,
        build_s REAL NOT NULL, measure_s REAL NOT NULL, verify_s REAL NOT NULL,
        detail TEXT NOT NULL, evidence TEXT NOT NULL, platform TEXT NOT NULL, timer TEXT NOT NULL,
        seed INTEGER NOT NULL, version TEXT NOT NULL, created TEXT NOT NULL,
        checksum INTEGER NOT NULL);
      CREATE INDEX record_by_time ON record (task, status, median_ns);
      CREATE INDEX record_by_fingerprint ON record (task, fingerprint);
    )sql",
    // What a file of schema 1 holds counts as measured here: it did not say what was imported.
    "ALTER TABLE record ADD COLUMN imported INTEGER NOT NULL DEFAULT 0",
    // What the machine was like: see MachineState.
    R"sql(
      ALTER TABLE record ADD COLUMN disturbed INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE record ADD COLUMN reference_ns REAL NOT NULL DEFAULT 0;
      ALTER TABLE record ADD COLUMN clock_ghz REAL NOT NULL DEFAULT 0;
      ALTER TABLE record ADD COLUMN load REAL NOT NULL DEFAULT 0;
    )sql",
    // Tasks that compute what others do: see DerivedLink.
    R"sql(
      CREATE TABLE derived (
        id INTEGER PRIMARY KEY, spec INTEGER NOT NULL REFERENCES task (id),
        task INTEGER NOT NULL REFERENCES task (id), recipe TEXT NOT NULL, rules INTEGER NOT NULL,
        numerics TEXT NOT NULL, flops REAL NOT NULL, limit_ns REAL NOT NULL,
        log2_error REAL NOT NULL, tests INTEGER NOT NULL, assumes TEXT NOT NULL,
        imported INTEGER NOT NULL, created TEXT NOT NULL, checksum INTEGER NOT NULL,
        UNIQUE (spec, task), CHECK (spec <> task));
      CREATE INDEX derived_by_task ON derived (task);
    )sql",
};
static_assert(std::size(kMigrations) == kDatabaseSchema);

constexpr const char* kRecordColumns =
    "SELECT id, fingerprint, sketch, trace, status, median_ns, spread, samples, build_s, "
    "measure_s, verify_s, detail, evidence, platform, timer, seed, version, created, "
    "imported, disturbed, reference_ns, clock_ghz, load, checksum FROM record ";

std::vector<double> parse_samples(std::string_view text) {
  std::vector<double> samples;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    double value = 0;
    const auto [next, code] = std::from_chars(at, end, value);
    if (code != std::errc()) break;
    samples.push_back(value);
    at = next < end ? next + 1 : end;
  }
  return samples;
}

// Covers what a wrong answer could come from; SQLite itself does not notice a flipped bit inside a
// text.
int64_t checksum_of(const Record& record) {
  const Measurement& m = record.measurement;
  uint64_t h = hash_bytes(record.fingerprint);
  h = hash_bytes(record.trace, h);
  h = hash_bytes(to_string(m.status), h);
  h = hash_bytes(print_samples(m.samples_ns), h);
  h = hash_bytes(m.evidence, h);
  // As in schema 1 unless it is.
  if (record.imported) h = hash_bytes("imported", h);
  // As in schema 1 where nothing is known of the machine.
  if (m.disturbed) h = hash_bytes("disturbed", h);
  if (m.machine.reference_ns != 0) h = hash_combine(h, hash_double(m.machine.reference_ns));
  return static_cast<int64_t>(hash_combine(h, hash_double(m.median_ns)));
}

// The record of the current row; nullopt if it is damaged.
std::optional<Record> read_record(Query& query) {
  Record record;
  Measurement& m = record.measurement;
  record.id = query.int_column();
  record.fingerprint = query.text_column();
  record.sketch = query.text_column();
  record.trace = query.text_column();
  const std::optional<MeasureStatus> status = measure_status_from_string(query.text_column());
  m.median_ns = query.double_column();
  m.spread = query.double_column();
  m.samples_ns = parse_samples(query.text_column());
  m.build_s = query.double_column();
  m.measure_s = query.double_column();
  m.verify_s = query.double_column();
  m.detail = query.text_column();
  m.evidence = query.text_column();
  record.platform = query.text_column();
  record.timer = query.text_column();
  record.seed = static_cast<uint64_t>(query.int_column());
  record.version = query.text_column();
  record.created = query.text_column();
  record.imported = query.int_column() != 0;
  m.disturbed = query.int_column() != 0;
  m.machine.reference_ns = query.double_column();
  m.machine.clock_ghz = query.double_column();
  m.machine.load = query.double_column();
  const int64_t checksum = query.int_column();
  if (!status) return std::nullopt;
  m.status = *status;
  if (checksum != checksum_of(record)) return std::nullopt;
  for (std::string* const text :
       {&record.sketch, &record.timer, &record.version, &record.created}) {
    *text = printable_line(*text);
  }
  for (std::string* const text : {&m.detail, &m.evidence}) *text = printable(*text);
  return record;
}

// Of columns id, hash, program, target, name, op_text, bindings.
TaskRow read_task(Query& query) {
  TaskRow row;
  row.id = query.int_column();
  row.key.hash = query.text_column();
  row.key.program = query.text_column();
  row.key.target = query.text_column();
  row.name = printable_line(query.text_column());
  row.op_text = query.text_column();
  row.bindings = printable_line(query.text_column());
  return row;
}

// A target's key without what is around a kernel when it is timed.
std::string without_surroundings(const std::string& text) {
  Result<ir::Target> target = ir::target_from_string(text);
  if (!target.ok()) return text;
  target->network.clear();
  target->constants_bytes = 0;
  return ir::to_string(*target);
}

// Between 0 and kDatabaseSchema.
Result<int64_t> version_of(sqlite3* db, const std::string& path) {
  PRUNERC_TRY(Query query, Query::prepare(db, path, "PRAGMA user_version"));
  PRUNERC_TRY_VOID(query.step());
  const int64_t found = query.int_column();
  if (found >= 0 && found <= kDatabaseSchema) return found;
  return error(Diag::kDatabaseVersion, path, found, int64_t{kDatabaseSchema});
}

// The same, of a file that has the tables of that version.
Result<int64_t> checked_version_of(sqlite3* db, const std::string& path) {
  PRUNERC_TRY(const int64_t found, version_of(db, path));
  PRUNERC_TRY_VOID(
      check_schema(db, path, std::span(kMigrations).first(static_cast<std::size_t>(found))));
  return found;
}

// Before anything is written, in one transaction: another process may make the tables meanwhile.
Result<void> check_ours(sqlite3* db, const std::string& path) {
  PRUNERC_TRY_VOID(execute(db, path, "BEGIN"));
  PRUNERC_TRY_VOID(checked_version_of(db, path));
  return execute(db, path, "COMMIT");
}

Result<void> migrate(sqlite3* db, const std::string& path) {
  PRUNERC_TRY(const int64_t found, version_of(db, path));
  if (found == kDatabaseSchema) return check_tables(db, path);
  PRUNERC_TRY(Transaction transaction, Transaction::begin(db, path));
  // Another process, even of another version, may have migrated while this one waited for the lock.
  PRUNERC_TRY(const int64_t current, checked_version_of(db, path));
  for (int64_t i = current; i < kDatabaseSchema; ++i) {
    PRUNERC_TRY_VOID(execute(db, path, kMigrations[i]));
  }
  const std::string mark = "PRAGMA user_version = " + std::to_string(kDatabaseSchema);
  PRUNERC_TRY_VOID(execute(db, path, mark.c_str()));
  return transaction.commit();
}

}  // namespace

Result<void> check_tables(sqlite3* db, const std::string& path) {
  return check_schema(db, path, kMigrations);
}

std::string print_samples(const std::vector<double>& samples) {
  std::string out;
  char text[32];
  for (const double sample : samples) {
    const auto [end, code] = std::to_chars(text, text + sizeof(text), sample);
    if (code != std::errc()) continue;
    if (!out.empty()) out += ' ';
    out.append(text, end);
  }
  return out;
}

void Database::Close::operator()(sqlite3* db) const { sqlite3_close_v2(db); }

Database::Database(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;
Database::~Database() = default;

namespace {

// SQLite's own waiting leaves out a part of this statement: another process that makes the same file at the
// moment would be an error.
Result<void> write_ahead(sqlite3* handle, const std::string& path) {
  using Clock = std::chrono::steady_clock;
  constexpr int kStepMs = 2;
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(kBusyTimeoutMs);
  while (true) {
    const Result<void> done = execute(handle, path, "PRAGMA journal_mode = WAL;");
    const bool is_busy = (sqlite3_errcode(handle) & 0xff) == SQLITE_BUSY;
    if (done.ok() || !is_busy || Clock::now() >= deadline) return done;
    sqlite3_sleep(kStepMs);
  }
}

}  // namespace

Result<Database> Database::open(const std::string& path) {
  PRUNERC_TRY_VOID(check_database_files(path));
  sqlite3* handle = nullptr;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_EXRESCODE;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  Database db(handle, path);
  if (code != SQLITE_OK) {
    return error(Diag::kDatabaseOpen, path,
                 std::string(handle != nullptr ? sqlite3_errmsg(handle) : "out of memory"));
  }
  harden(handle);
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  // The log is kept in the file's header: what is not ours stays as it is.
  PRUNERC_TRY_VOID(check_ours(handle, path));
  // Waiting inside of the statement would keep new readers out.
  sqlite3_busy_timeout(handle, 0);
  PRUNERC_TRY_VOID(write_ahead(handle, path));
  sqlite3_busy_timeout(handle, kBusyTimeoutMs);
  // FULL: a commit is on disk when it returns, also if the machine loses power.
  PRUNERC_TRY_VOID(execute(handle, path, "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"));
  PRUNERC_TRY_VOID(migrate(handle, path));
  return db;
}

Result<std::optional<int64_t>> Database::find_task(const TaskKey& key) {
  PRUNERC_TRY(Query query, Query::prepare(db_.get(), path_,
                                          "SELECT id, program, target FROM task WHERE hash = ?"));
  query.bind(key.hash);
  while (true) {
    PRUNERC_TRY(const bool more, query.step());
    if (!more) return std::optional<int64_t>();
    const int64_t id = query.int_column();
    const std::string program = query.text_column();
    // A hash only finds the place: another task with the same hash is not a hit.
    if (program == key.program && query.text_column() == key.target) {
      return std::optional<int64_t>(id);
    }
  }
}

Result<std::vector<TaskRow>> Database::tasks_of_program(const std::string& program) {
  PRUNERC_TRY(Query query, Query::prepare(db_.get(), path_,
                                          "SELECT id, hash, program, target, name, op_text, "
                                          "bindings FROM task WHERE program = ? ORDER BY id"));
  query.bind(program);
  std::vector<TaskRow> rows;
  while (true) {
    PRUNERC_TRY(const bool more, query.step());
    if (!more) return rows;
    rows.push_back(read_task(query));
  }
}

Result<std::optional<TaskRow>> Database::task_row(int64_t id) {
  PRUNERC_TRY(Query query, Query::prepare(db_.get(), path_,
                                          "SELECT id, hash, program, target, name, op_text, "
                                          "bindings FROM task WHERE id = ?"));
  query.bind(id);
  PRUNERC_TRY(const bool found, query.step());
  return found ? std::optional<TaskRow>(read_task(query)) : std::nullopt;
}

Result<int64_t> Database::put_task_row(const TaskRow& row) {
  PRUNERC_TRY(const std::optional<int64_t> known, find_task(row.key));
  if (known) return *known;
  PRUNERC_TRY(Query query,
              Query::prepare(db_.get(), path_,
                             "INSERT INTO task (hash, program, target, name, op_text, bindings) "
                             "VALUES (?, ?, ?, ?, ?, ?)"));
  query.bind(row.key.hash).bind(row.key.program).bind(row.key.target);
  query.bind(row.name).bind(row.op_text).bind(row.bindings);
  kernel_groups_.reset();
  PRUNERC_TRY_VOID(query.run());
  return static_cast<int64_t>(sqlite3_last_insert_rowid(db_.get()));
}

Result<int64_t> Database::put_task(const Task& task) {
  PRUNERC_TRY(Transaction transaction, Transaction::begin(db_.get(), path_));
  TaskRow row;
  row.key = task.key;
  row.name = task.name;
  row.op_text = task.op_text;
  row.bindings = task.bindings;
  PRUNERC_TRY(const int64_t id, put_task_row(row));
  PRUNERC_TRY_VOID(transaction.commit());
  return id;
}

Result<std::vector<TaskRow>> Database::list_tasks() {
  PRUNERC_TRY(Query query,
              Query::prepare(db_.get(), path_,
                             "SELECT t.id, t.hash, t.program, t.target, t.name, t.op_text, "
                             "t.bindings, COUNT(r.id), COALESCE(SUM(r.imported), 0), "
                             "COALESCE(MIN(CASE WHEN r.status = 'ok' AND r.imported <> 0 "
                             "THEN r.median_ns END), 0) FROM task t "
                             "LEFT JOIN record r ON r.task = t.id GROUP BY t.id ORDER BY t.id"));
  std::vector<TaskRow> rows;
  while (true) {
    PRUNERC_TRY(const bool more, query.step());
    if (!more) return rows;
    TaskRow row = read_task(query);
    row.num_records = query.int_column();
    row.num_imported = query.int_column();
    row.claimed_ns = query.double_column();
    rows.push_back(std::move(row));
  }
}

Result<int64_t> Database::insert_record(int64_t task_id, const Record& record) {
  PRUNERC_TRY(Query query,
              Query::prepare(db_.get(), path_,
                             "INSERT INTO record (task, fingerprint, sketch, trace, status, "
                             "median_ns, spread, samples, build_s, measure_s, verify_s, detail, "
                             "evidence, platform, timer, seed, version, created, imported, "
                             "disturbed, reference_ns, clock_ghz, load, checksum) VALUES "
                             "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, "
                             "CASE ?18 WHEN '' THEN strftime('%Y-%m-%dT%H:%M:%SZ', 'now') "
                             "ELSE ?18 END, ?, ?, ?, ?, ?, ?)"));
  const Measurement& m = record.measurement;
  query.bind(task_id).bind(record.fingerprint).bind(record.sketch).bind(record.trace);
  query.bind(std::string(to_string(m.status))).bind(m.median_ns).bind(m.spread);
  query.bind(print_samples(m.samples_ns)).bind(m.build_s).bind(m.measure_s).bind(m.verify_s);
  query.bind(m.detail).bind(m.evidence).bind(record.platform).bind(record.timer);
  query.bind(static_cast<int64_t>(record.seed)).bind(record.version).bind(record.created);
  query.bind(static_cast<int64_t>(record.imported ? 1 : 0));
  query.bind(static_cast<int64_t>(m.disturbed)).bind(m.machine.reference_ns);
  query.bind(m.machine.clock_ghz).bind(m.machine.load).bind(checksum_of(record));
  PRUNERC_TRY_VOID(query.run());
  return static_cast<int64_t>(sqlite3_last_insert_rowid(db_.get()));
}

Result<void> Database::put_records(int64_t task_id, std::span<const Record> records) {
  PRUNERC_TRY(Transaction transaction, Transaction::begin(db_.get(), path_));
  for (const Record& record : records) PRUNERC_TRY_VOID(insert_record(task_id, record));
  return transaction.commit();
}

Result<void> Database::group_tasks() {
  PRUNERC_TRY(Query version, Query::prepare(db_.get(), path_, "PRAGMA data_version"));
  PRUNERC_TRY(const bool is_known, version.step());
  const int64_t now = is_known ? version.int_column() : 0;
  if (kernel_groups_ && kernel_groups_->data_version == now) return {};
  KernelGroups found;
  found.data_version = now;
  std::map<std::string, std::size_t> seen;
  std::map<std::string, std::string> kept;  // of each target; there are few
  PRUNERC_TRY(Query query,
              Query::prepare(db_.get(), path_, "SELECT id, target, program FROM task ORDER BY id"));
  while (true) {
    PRUNERC_TRY(const bool more, query.step());
    if (!more) break;
    const int64_t id = query.int_column();
    const std::string target = query.text_column();
    const auto [at, is_new] = kept.try_emplace(target);
    if (is_new) at->second = without_surroundings(target);
    std::string kernels = at->second + "\n" + query.text_column();
    const std::size_t group = seen.try_emplace(std::move(kernels), seen.size()).first->second;
    if (group == found.groups.size()) found.groups.emplace_back();
    found.groups[group].push_back(id);
    found.group_of[id] = group;
  }
  kernel_groups_ = std::move(found);
  return {};
}

Result<std::vector<int64_t>> Database::tasks_of_same_kernels(int64_t task_id) {
  PRUNERC_TRY_VOID(group_tasks());
  const auto at = kernel_groups_->group_of.find(task_id);
  if (at == kernel_groups_->group_of.end()) return std::vector<int64_t>{task_id};
  return kernel_groups_->groups[at->second];
}

Result<void> Database::put_verdict(int64_t task_id, const std::string& fingerprint,
                                   const Measurement& verdict) {
  PRUNERC_TRY(Transaction transaction, Transaction::begin(db_.get(), path_));
  PRUNERC_TRY(Query select,
              Query::prepare(db_.get(), path_,
                             std::string(kRecordColumns) + "WHERE task = ? AND fingerprint = ? AND "
                                                           "status = 'ok'"));
  std::vector<int64_t> tasks = {task_id};
  if (verdict.status == MeasureStatus::kNotEqual || verdict.status == MeasureStatus::kWrongResult) {
    PRUNERC_TRY(tasks, tasks_of_same_kernels(task_id));
  }
  std::vector<Record> changed;
  for (const int64_t task : tasks) {
    select.reset();
    select.bind(task).bind(fingerprint);
    while (true) {
      PRUNERC_TRY(const bool more, select.step());
      if (!more) break;
      std::optional<Record> record = read_record(select);
      if (record && !(record->imported && verdict.ok())) changed.push_back(*std::move(record));
    }
  }
  PRUNERC_TRY(Query update,
              Query::prepare(db_.get(), path_,
                             "UPDATE record SET status = ?, verify_s = ?, detail = ?, "
                             "evidence = ?, checksum = ? WHERE id = ?"));
  for (Record& record : changed) {
    Measurement& m = record.measurement;
    m.status = verdict.status;
    m.evidence = verdict.evidence;
    update.bind(std::string(to_string(m.status))).bind(verdict.verify_s).bind(verdict.detail);
    update.bind(m.evidence).bind(checksum_of(record)).bind(record.id);
    PRUNERC_TRY_VOID(update.run());
  }
  return transaction.commit();
}

Result<bool> Database::is_refuted(int64_t task_id, const std::string& fingerprint) {
  PRUNERC_TRY(const std::set<std::string> found, refuted(task_id));
  return found.contains(fingerprint);
}

Result<std::set<std::string>> Database::refuted(int64_t task_id) {
  PRUNERC_TRY(const std::vector<int64_t> tasks, tasks_of_same_kernels(task_id));
  PRUNERC_TRY(Query query, Query::prepare(db_.get(), path_,
                                          std::string(kRecordColumns) +
                                              "WHERE task = ? AND imported = 0 AND "
                                              "status IN ('wrong_result', 'not_equal')"));
  std::set<std::string> found;
  for (const int64_t task : tasks) {
    query.reset();
    query.bind(task);
    while (true) {
      PRUNERC_TRY(const bool more, query.step());
      if (!more) break;
      std::optional<Record> record = read_record(query);
      if (record) found.insert(std::move(record->fingerprint));
    }
  }
  return found;
}

Result<std::vector<Record>> Database::select_records(const std::string& where, int64_t task_id,
                                                     int64_t limit) {
  PRUNERC_TRY(Query query, Query::prepare(db_.get(), path_, kRecordColumns + where));
  query.bind(task_id);
  std::vector<Record> records;
  std::set<std::string> seen;
  while (limit < 0 || static_cast<int64_t>(records.size()) < limit) {
    PRUNERC_TRY(const bool more, query.step());
    if (!more) break;
    std::optional<Record> record = read_record(query);
    if (!record) continue;
    if (limit >= 0 && !seen.insert(record->fingerprint).second) continue;
    records.push_back(*std::move(record));
  }
  return records;
}

Result<std::vector<Record>> Database::claims(int64_t task_id, int64_t k) {
  return select_records(
      "WHERE task = ? AND status = 'ok' AND imported <> 0 AND NOT EXISTS (SELECT 1 FROM record own "
      "WHERE own.task = record.task AND own.fingerprint = record.fingerprint AND own.imported = 0) "
      "ORDER BY median_ns, id",
      task_id, k < 0 ? 0 : k);
}

Result<std::vector<Record>> Database::records(int64_t task_id) {
  return select_records("WHERE task = ? ORDER BY id", task_id, -1);
}

Result<DatabaseStats> Database::stats() {
  DatabaseStats stats;
  PRUNERC_TRY(Query tasks, Query::prepare(db_.get(), path_, "SELECT COUNT(*) FROM task"));
  PRUNERC_TRY_VOID(tasks.step());
  stats.num_tasks = tasks.int_column();
  PRUNERC_TRY(const std::vector<std::optional<Link>> links, select_links("WHERE ?1 = ?2", 0));
  stats.num_derived = static_cast<int64_t>(links.size());
  stats.num_damaged = std::count(links.begin(), links.end(), std::nullopt);
  PRUNERC_TRY(Query query, Query::prepare(db_.get(), path_, kRecordColumns));
  while (true) {
    PRUNERC_TRY(const bool more, query.step());
    if (!more) return stats;
    ++stats.num_records;
    const std::optional<Record> record = read_record(query);
    if (!record) {
      ++stats.num_damaged;
      continue;
    }
    ++stats.by_status[static_cast<std::size_t>(record->measurement.status)];
    if (record->verified()) ++stats.num_verified;
    if (record->imported) ++stats.num_imported;
  }
}

Result<std::vector<Finding>> Database::validate() {
  std::vector<Finding> findings;
  PRUNERC_TRY(Query check, Query::prepare(db_.get(), path_, "PRAGMA integrity_check"));
  while (true) {
    PRUNERC_TRY(const bool more, check.step());
    if (!more) break;
    const std::string line = check.text_column();
    if (line != "ok") findings.push_back({0, line});
  }
  PRUNERC_TRY(const std::vector<TaskRow> tasks, list_tasks());
  for (const TaskRow& task : tasks) {
    const Result<ir::Program> program = ir::parse(task.key.program);
    if (!program)
      findings.push_back({0, "task " + std::to_string(task.id) + ": " + program.error().message()});
  }
  PRUNERC_TRY(const std::vector<std::optional<Link>> links, select_links("WHERE ?1 = ?2", 0));
  for (const std::optional<Link>& link : links) {
    if (!link) {
      findings.push_back({0, "a link of a derived task does not fit its checksum"});
    } else if (link->link.imported) {
      findings.push_back({0,
                          "the link of task " + std::to_string(link->task.id) + " to task " +
                              std::to_string(link->spec.id) +
                              " is imported; that they compute the same was not checked here",
                          true});
    }
  }
  PRUNERC_TRY(Query query, Query::prepare(db_.get(), path_, kRecordColumns));
  while (true) {
    PRUNERC_TRY(const bool more, query.step());
    if (!more) return findings;
    Query& row = query;
    const std::optional<Record> record = read_record(row);
    if (!record) {
      findings.push_back({0, "a record does not fit its checksum"});
      continue;
    }
    const Result<schedule::Trace> trace = schedule::parse_trace(record->trace);
    if (!trace) findings.push_back({record->id, trace.error().message()});
    if (record->imported && record->measurement.ok()) {
      findings.push_back(
          {record->id, "imported; its result and its time were not checked here", true});
    }
  }
}

}  // namespace prunerc::search
