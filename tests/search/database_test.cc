#include "search/record/database.h"

#include "schedule/schedule.h"
#include "tests/search/programs.h"
#include "tests/search/records.h"
#include "tests/support/check.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <sstream>
#include <thread>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

TEST_CASE("a stored record comes back as it was") {
  Database db = open_or_die(fresh_path("roundtrip"));
  const Task task = make_test_task("gemm");
  const Result<int64_t> id = db.put_task(task);
  REQUIRE_OK(id);
  Record record = make_record(7, 1234.5678901234567);
  record.measurement.detail = "text with 'quotes'\nand lines";
  REQUIRE_OK(db.put_records(*id, {&record, 1}));
  const Result<std::vector<Record>> all = db.records(*id);
  REQUIRE_OK(all);
  REQUIRE(all->size() == 1);
  CHECK((*all)[0].measurement == record.measurement);
  CHECK((*all)[0].seed == record.seed);
  CHECK((*all)[0].trace == record.trace);
  CHECK((*all)[0].created.size() == 20);
}

TEST_CASE("the same task gets the same row, another program or target another one") {
  Database db = open_or_die(fresh_path("tasks"));
  const Task gemm = make_test_task("gemm");
  const int64_t first = db.put_task(gemm).value();
  CHECK(db.put_task(gemm).value() == first);
  CHECK(db.put_task(make_test_task("gemm_odd")).value() != first);
  CHECK(db.put_task(make_test_task("gemm", 1)).value() != first);
  CHECK(db.find_task(gemm.key).value() == first);
}

TEST_CASE("a hit needs the full key, not only its hash") {
  Database db = open_or_die(fresh_path("key"));
  Task task = make_test_task("gemm");
  REQUIRE_OK(db.put_task(task));
  task.key.program += " ";  // the same hash, another text
  CHECK_FALSE(db.find_task(task.key).value().has_value());
}

TEST_CASE("a renamed and renumbered operator finds its records, and they replay") {
  Database db = open_or_die(fresh_path("renamed"));
  const auto load = [](std::string_view text) {
    return make_task("scale", testing::parse_or_die(text), make_test_task("gemm").target);
  };
  const Task plain = load(R"(program scale(A: f32[64]) -> (B: f32[64]) {
    for i in 64 @L0 { block "B" @B0 [v: S(64) = i] { B[v] = A[v] + 1f32 } } })");
  const Task renamed = load(R"(program other(first: f32[64]) -> (out: f32[64]) {
    for a in 64 @L9 { block "x" @B4 [k: S(64) = a] { out[k] = first[k] + 1f32 } } })");
  CHECK(plain.key == renamed.key);
  const int64_t id = db.put_task(plain).value();
  CHECK(db.find_task(renamed.key).value() == id);
  const Result<schedule::Trace> trace =
      schedule::parse_trace("split(@L0, [8, 8]) -> @L1, @L2\nparallel(@L1)\n");
  REQUIRE_OK(trace);
  const Result<schedule::Schedule> there = schedule::replay(renamed.base, *trace);
  REQUIRE_OK(there);
  CHECK(there->trace() == *trace);
}

TEST_CASE("measured platform numbers are not part of the key") {
  Task a = make_test_task("gemm");
  ir::Target measured = a.target;
  measured.platform.memory_bandwidth = 4.1e10;
  CHECK(make_task("gemm", a.base, measured).key == a.key);
  measured.llvm_cpu = "znver4";
  CHECK_FALSE(make_task("gemm", a.base, measured).key == a.key);
  ir::Target gpu = *ir::target_from_string("cuda:sm_80");
  const Task b = make_task("gemm", a.base, gpu);
  gpu.tensor_macs_per_sm = 987;
  CHECK(make_task("gemm", a.base, gpu).key == b.key);
}

TEST_CASE("the best is the fastest verified record, and top_k names each candidate once") {
  Database db = open_or_die(fresh_path("best"));
  const int64_t id = db.put_task(make_test_task("gemm")).value();
  CHECK_FALSE(db.best(id).value().has_value());
  std::vector<Record> records = {make_record(1, 300), make_record(2, 200),
                                 make_record(3, 100, false), make_record(2, 210),
                                 make_record(4, 50)};
  records[4].measurement.status = MeasureStatus::kWrongResult;
  REQUIRE_OK(db.put_records(id, records));
  CHECK(db.best(id).value()->fingerprint == records[1].fingerprint);
  const std::vector<Record> top = db.top_k(id, 10).value();
  REQUIRE(top.size() == 3);
  CHECK(top[0].fingerprint == records[2].fingerprint);
  CHECK(top[1].fingerprint == records[1].fingerprint);
}

TEST_CASE("a later measurement of a candidate replaces the earlier one in the ranking") {
  Database db = open_or_die(fresh_path("finals"));
  const int64_t id = db.put_task(make_test_task("gemm")).value();
  const std::vector<Record> records = {make_record(1, 100), make_record(2, 150),
                                       make_record(1, 180)};
  REQUIRE_OK(db.put_records(id, records));
  CHECK(db.best(id).value()->fingerprint == records[1].fingerprint);
  CHECK(db.top_k(id, 5).value()[1].measurement.median_ns == records[2].measurement.median_ns);
}

TEST_CASE("a verdict changes every row of the candidate") {
  Database db = open_or_die(fresh_path("verdict"));
  const int64_t id = db.put_task(make_test_task("gemm")).value();
  const Record record = make_record(1, 100, false);
  REQUIRE_OK(db.put_records(id, {&record, 1}));
  Measurement verdict;
  verdict.status = MeasureStatus::kOk;
  verdict.evidence = "4096 outputs agree";
  REQUIRE_OK(db.put_verdict(id, record.fingerprint, verdict));
  CHECK(db.best(id).value()->measurement.evidence == verdict.evidence);
  verdict.status = MeasureStatus::kWrongResult;
  verdict.evidence = "";
  REQUIRE_OK(db.put_verdict(id, record.fingerprint, verdict));
  CHECK_FALSE(db.best(id).value().has_value());
}

// A file as an earlier schema left it, with one record.
std::string file_of_schema(const std::string& name, int schema) {
  const std::string path = fresh_path(name + std::to_string(schema));
  {
    Database db = open_or_die(path);
    const int64_t id = db.put_task(make_test_task("gemm")).value();
    const Record record = make_record(1, 100);
    REQUIRE_OK(db.put_records(id, {&record, 1}));
  }
  std::string undo = "DROP TABLE derived;";
  if (schema < 3) {
    for (const char* column : {"disturbed", "reference_ns", "clock_ghz", "load"})
      undo += std::string("ALTER TABLE record DROP COLUMN ") + column + ";";
  }
  if (schema < 2) undo += "ALTER TABLE record DROP COLUMN imported;";
  undo += "PRAGMA user_version = " + std::to_string(schema);
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &raw) == SQLITE_OK);
  CHECK(sqlite3_exec(raw, undo.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(raw);
  return path;
}

TEST_CASE("a file of an earlier schema is brought to this one without a loss") {
  for (int schema = 1; schema < kDatabaseSchema; ++schema) {
    const std::string path = file_of_schema("migrated", schema);
    for (int round = 0; round < 2; ++round) {
      INFO("schema " << schema << ", round " << round);
      Database db = open_or_die(path);
      const Record record = db.records(1).value()[0];
      CHECK(record.measurement == make_record(1, 100).measurement);
      CHECK_FALSE(record.imported);
      CHECK(db.best(1)->has_value());
      CHECK(db.derived_of(1)->empty());
      CHECK(db.validate()->empty());
    }
  }
}

TEST_CASE("what is not a database is refused with its name") {
  const std::string path = fresh_path("garbage");
  std::ofstream(path) << std::string(8192, 'x');
  CHECK_DIAG(Database::open(path), DatabaseCorrupt);
  CHECK_DIAG(Database::open("/nonexistent/folder/x.db"), DatabaseOpen);
}

TEST_CASE("a database of another program is refused and stays as it is") {
  const std::string path = fresh_path("others");
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &raw) == SQLITE_OK);
  REQUIRE(sqlite3_exec(raw, "CREATE TABLE places (url TEXT)", nullptr, nullptr, nullptr) ==
          SQLITE_OK);
  sqlite3_close(raw);
  const auto bytes = [&] {
    std::stringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  };
  const std::string before = bytes();
  CHECK_DIAG(Database::open(path), DatabaseCorrupt);
  CHECK_DIAG(Database::open_to_read(path), DatabaseCorrupt);
  CHECK(bytes() == before);
}

// Calls `count` in a process without the rights of root, which may write everywhere.
int without_rights(const std::function<int()>& count) {
  const pid_t child = fork();
  if (child == 0) {
    ::setenv("TMPDIR", "/tmp", 1);
    const bool dropped = ::geteuid() != 0 || ::setuid(65534) == 0;
    ::_exit(dropped ? count() : 255);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  return WEXITSTATUS(status);
}

TEST_CASE("a database is read where nothing may be written, with what its writer left in the log") {
  char name[] = "/tmp/prunerc_reader_XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  const std::filesystem::path folder = name;
  const std::string path = fresh_path("shared");
  Database writer = open_or_die(path);
  const Result<int64_t> id = writer.put_task(make_test_task("gemm"));
  REQUIRE_OK(id);
  const Record record = make_record(1, 100);
  REQUIRE_OK(writer.put_records(*id, {&record, 1}));
  // Not closed yet: what it wrote is in its log alone.
  REQUIRE(std::filesystem::file_size(path + "-wal") > 0);
  std::filesystem::copy_file(path, folder / "log.db");
  std::filesystem::copy_file(path + "-wal", folder / "log.db-wal");
  writer = open_or_die(":memory:");
  std::filesystem::copy_file(path, folder / "closed.db");
  const auto read_all = std::filesystem::perms::owner_read | std::filesystem::perms::group_read |
                        std::filesystem::perms::others_read;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    std::filesystem::permissions(file, read_all);
  }
  for (const ::mode_t mode : {0555, 0777}) {
    REQUIRE(::chmod(name, mode) == 0);
    for (const char* file : {"log.db", "closed.db"}) {
      INFO(file << " in a folder of mode " << mode);
      const std::string shared = folder / file;
      CHECK(without_rights([&] {
              Result<Database> db = Database::open_to_read(shared);
              if (!db.ok()) return 100;
              const Result<std::vector<TaskRow>> tasks = db->list_tasks();
              if (!tasks.ok() || tasks->size() != 1 || db->path() != shared) return 101;
              // What cannot be kept is refused rather than lost.
              if (db->put_records(1, {&record, 1}).ok()) return 102;
              return static_cast<int>((*tasks)[0].num_records);
            }) == 1);
    }
  }
  ::chmod(name, 0777);
  std::filesystem::remove_all(folder);
}

TEST_CASE("a file of an earlier schema is read where nothing may be written, and stays as it is") {
  const int schema = GENERATE(1, 2, 3);
  char name[] = "/tmp/prunerc_old_XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  const std::string path = std::string(name) + "/old.db";
  std::filesystem::copy_file(file_of_schema("old", schema), path);
  REQUIRE(::chmod(path.c_str(), 0444) == 0);
  REQUIRE(::chmod(name, 0555) == 0);
  const auto bytes = [&] {
    std::stringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  };
  const std::string before = bytes();
  CHECK(without_rights([&] {
          Result<Database> db = Database::open_to_read(path);
          if (!db.ok()) return 100;
          const Result<std::optional<Record>> best = db->best(1);
          if (!db->derived_of(1).ok()) return 102;
          return best.ok() && best->has_value() ? 1 : 101;
        }) == 1);
  CHECK(bytes() == before);
  ::chmod(name, 0777);
  std::filesystem::remove_all(name);
}

TEST_CASE("what must be copied to be read is an error where there is no folder for the copy") {
  char name[] = "/tmp/prunerc_nowhere_XXXXXX";
  REQUIRE(::mkdtemp(name) != nullptr);
  const std::string path = std::string(name) + "/old.db";
  std::filesystem::copy_file(file_of_schema("nowhere", 3), path);
  REQUIRE(::chmod(path.c_str(), 0444) == 0);
  REQUIRE(::chmod(name, 0555) == 0);
  CHECK(without_rights([&] {
          ::setenv("TMPDIR", "/nonexistent/folder", 1);
          return Database::open_to_read(path).ok() ? 100 : 1;
        }) == 1);
  ::chmod(name, 0777);
  std::filesystem::remove_all(name);
}

TEST_CASE("a process that is killed while it migrates loses nothing") {
  const int schema = GENERATE(1, 2, 3);
  const std::string path = file_of_schema("killed", schema);
  for (int delay_us = 0; delay_us < 6000; delay_us += 200) {
    const std::string copy = fresh_path("killed_copy");
    std::filesystem::copy_file(path, copy);
    const pid_t child = fork();
    if (child == 0) {
      const Result<Database> db = Database::open(copy);
      ::_exit(db.ok() ? 0 : 1);
    }
    ::usleep(static_cast<useconds_t>(delay_us));
    ::kill(child, SIGKILL);
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    Database db = open_or_die(copy);
    CHECK(db.records(1).value().size() == 1);
    CHECK(db.best(1)->has_value());
    CHECK(db.derived_of(1)->empty());
    CHECK(db.validate()->empty());
  }
}

TEST_CASE("reading a database makes no file, and a folder is none") {
  const std::string path = fresh_path("absent");
  Result<Database> db = Database::open_to_read(path);
  REQUIRE_OK(db);
  CHECK(db->path() == path);
  CHECK(db->list_tasks()->empty());
  CHECK_FALSE(std::filesystem::exists(path));
  CHECK_DIAG(Database::open_to_read("/nonexistent/folder/x.db"), DatabaseOpen);
  CHECK_DIAG(Database::open("/tmp"), FileKind);
  CHECK_DIAG(Database::open_to_read("/tmp"), FileKind);
  std::ofstream(path) << std::string(8192, 'x');
  CHECK_DIAG(Database::open_to_read(path), DatabaseCorrupt);
}

TEST_CASE("a file without the tables that it should have is refused") {
  const std::string path = fresh_path("renamed");
  { open_or_die(path); }
  std::stringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  std::string bytes = text.str();
  const std::string table = "task";
  for (std::size_t at = 0; (at = bytes.find(table, at)) != std::string::npos; ++at) bytes[at] = 'm';
  std::ofstream(path, std::ios::binary) << bytes;
  CHECK_DIAG(Database::open(path), DatabaseCorrupt);
}

TEST_CASE("exported records are a store that nothing is written to") {
  const std::string path = fresh_path("exported") + ".jsonl";
  std::ofstream(path) << "";
  Result<Database> db = Database::open_to_read(path);
  REQUIRE_OK(db);
  CHECK_DIAG(db->put_task(make_test_task("gemm")), DatabaseQuery);
}

TEST_CASE("a file of a later schema is refused") {
  const std::string path = fresh_path("later");
  { open_or_die(path); }
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(60);  // the user version in SQLite's file header
  file.write("\x00\x00\x00\x63", 4);
  file.close();
  CHECK_DIAG(Database::open(path), DatabaseVersion);
}

TEST_CASE("a file that a later version migrates at the moment is refused") {
  const std::string path = file_of_schema("later_at_once", 3);
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &raw) == SQLITE_OK);
  REQUIRE(sqlite3_exec(raw, "BEGIN IMMEDIATE; PRAGMA user_version = 99", nullptr, nullptr,
                       nullptr) == SQLITE_OK);
  // Sees schema 3, and waits for the lock to migrate it.
  std::optional<Diag> refusal;
  std::thread other([&] {
    const Result<Database> db = Database::open(path);
    if (!db.ok()) refusal = db.error().id();
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(sqlite3_exec(raw, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK);
  other.join();
  CHECK(refusal == Diag::kDatabaseVersion);
  int version = 0;
  const auto read = [](void* to, int, char** values, char**) {
    *static_cast<int*>(to) = std::atoi(values[0]);
    return 0;
  };
  CHECK(sqlite3_exec(raw, "PRAGMA user_version", read, &version, nullptr) == SQLITE_OK);
  CHECK(version == 99);
  sqlite3_close(raw);
}

TEST_CASE("damage gives a typed error or is skipped, never a crash") {
  const std::string path = fresh_path("damage");
  {
    Database db = open_or_die(path);
    const int64_t id = db.put_task(make_test_task("gemm")).value();
    std::vector<Record> records;
    for (int i = 0; i < 200; ++i) records.push_back(make_record(i, 100 + i));
    REQUIRE_OK(db.put_records(id, records));
  }
  std::stringstream whole;
  whole << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string bytes = whole.str();
  REQUIRE(bytes.size() > 8192);
  Rng rng(3);
  int num_typed = 0;
  for (int round = 0; round < 60; ++round) {
    std::string broken = bytes;
    for (int i = 0; i < 40; ++i) {
      broken[static_cast<std::size_t>(rng.below(broken.size()))] = static_cast<char>(rng.next());
    }
    if (round % 3 == 0) broken.resize(static_cast<std::size_t>(rng.below(broken.size())));
    const std::string copy = fresh_path("damage_copy");
    std::ofstream(copy, std::ios::binary) << broken;
    Result<Database> db = Database::open(copy);
    if (!db) {
      ++num_typed;
      continue;
    }
    const Result<std::vector<TaskRow>> tasks = db->list_tasks();
    if (!tasks) {
      ++num_typed;
      continue;
    }
    for (const TaskRow& task : *tasks) {
      const Result<std::vector<Record>> found = db->records(task.id);
      if (!found) ++num_typed;
      // A record that is returned is one that was written.
      for (std::size_t i = 0; found.ok() && i < found->size(); ++i) {
        CHECK((*found)[i].measurement.samples_ns.size() == 3);
      }
    }
    static_cast<void>(db->validate().ok());
  }
  CHECK(num_typed > 0);
}

TEST_CASE("a damaged row does not hide the candidate's others") {
  const std::string path = fresh_path("damaged_row");
  Database db = open_or_die(path);
  const int64_t id = db.put_task(make_test_task("gemm")).value();
  const std::vector<Record> records = {make_record(1, 100), make_record(1, 90), make_record(2, 95)};
  REQUIRE_OK(db.put_records(id, records));
  CHECK(db.best(id).value()->id == 2);
  sqlite3* raw = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &raw) == SQLITE_OK);
  const char* const damage = "UPDATE record SET samples = '1 1 1', reference_ns = 1 WHERE id = 2";
  REQUIRE(sqlite3_exec(raw, damage, nullptr, nullptr, nullptr) == SQLITE_OK);
  sqlite3_close(raw);
  CHECK(db.best(id).value()->id == 3);
  const std::vector<Record> fastest = db.top_k(id, 10).value();
  REQUIRE(fastest.size() == 2);
  CHECK(fastest[1].id == 1);
}

TEST_CASE("validate finds a record that was changed behind the store's back") {
  Database db = open_or_die(fresh_path("validate"));
  const int64_t id = db.put_task(make_test_task("gemm")).value();
  Record bad = make_record(1, 100);
  bad.trace = "no such primitive(";
  REQUIRE_OK(db.put_records(id, {&bad, 1}));
  const Result<std::vector<Finding>> findings = db.validate();
  REQUIRE_OK(findings);
  REQUIRE(findings->size() == 1);
  CHECK((*findings)[0].record_id == 1);
}

TEST_CASE("a killed writer loses nothing that was acknowledged") {
  const std::string path = fresh_path("killed");
  { open_or_die(path); }
  for (int round = 0; round < 5; ++round) {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t child = fork();
    if (child == 0) {
      Result<Database> db = Database::open(path);
      const int64_t id = db.ok() ? db->put_task(make_test_task("gemm")).value() : 0;
      for (int i = 0;; ++i) {
        const Record record = make_record(round * 100000 + i, 100);
        if (!db.ok() || !db->put_records(id, {&record, 1})) _exit(1);
        if (write(ends[1], "x", 1) != 1) _exit(1);
      }
    }
    close(ends[1]);
    char acknowledged = 0;
    for (int i = 0; i < 10 + round * 7; ++i) REQUIRE(read(ends[0], &acknowledged, 1) == 1);
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    close(ends[0]);
    REQUIRE(WIFSIGNALED(status));

    Database db = open_or_die(path);
    const int64_t id = db.put_task(make_test_task("gemm")).value();
    int of_this_round = 0;
    const std::vector<Record> stored = db.records(id).value();
    const std::string prefix = Fingerprint{1, 0}.to_string().substr(0, 16);
    for (const Record& record : stored) {
      const uint64_t n = std::strtoull(record.fingerprint.c_str() + 16, nullptr, 16);
      of_this_round += n / 100000 == static_cast<uint64_t>(round) ? 1 : 0;
      CHECK(record.fingerprint.substr(0, 16) == prefix);
    }
    CHECK(of_this_round >= 10 + round * 7);
    CHECK(db.validate().value().empty());
  }
}

TEST_CASE("who makes a database waits for another that makes it too") {
  const std::string path = fresh_path("made_twice");
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &other) == SQLITE_OK);
  REQUIRE(sqlite3_exec(other, "BEGIN IMMEDIATE; CREATE TABLE passing(x)", nullptr, nullptr,
                       nullptr) == SQLITE_OK);
  std::thread ends([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    sqlite3_exec(other, "ROLLBACK", nullptr, nullptr, nullptr);
  });
  const Result<Database> db = Database::open(path);
  ends.join();
  sqlite3_close(other);
  CHECK(db.ok());
}

TEST_CASE("who waits for a reader keeps no other one out") {
  const std::string path = fresh_path("readers");
  open_or_die(path);
  sqlite3 *reader = nullptr, *other = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &reader) == SQLITE_OK);
  REQUIRE(sqlite3_open(path.c_str(), &other) == SQLITE_OK);
  sqlite3_busy_timeout(other, 5000);
  const char* const kRead = "SELECT name FROM sqlite_master";
  // Without a log, which the next one to open it brings back.
  REQUIRE(sqlite3_exec(reader, "PRAGMA journal_mode = DELETE; BEGIN", nullptr, nullptr, nullptr) ==
          SQLITE_OK);
  REQUIRE(sqlite3_exec(reader, kRead, nullptr, nullptr, nullptr) == SQLITE_OK);
  bool is_open = false;
  std::thread opens([&] { is_open = Database::open(path).ok(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  CHECK(sqlite3_exec(other, kRead, nullptr, nullptr, nullptr) == SQLITE_OK);
  CHECK(sqlite3_exec(reader, "COMMIT", nullptr, nullptr, nullptr) == SQLITE_OK);
  opens.join();
  CHECK(is_open);
  sqlite3_close(reader);
  sqlite3_close(other);
}

TEST_CASE("several processes may write at once") {
  const std::string path = fresh_path("writers");
  { open_or_die(path); }
  constexpr int kWriters = 4, kBatches = 8;
  std::vector<pid_t> children;
  for (int w = 0; w < kWriters; ++w) {
    const pid_t child = fork();
    if (child == 0) {
      Result<Database> db = Database::open(path);
      if (!db) _exit(1);
      const Result<int64_t> id = db->put_task(make_test_task("gemm"));
      if (!id) _exit(2);
      for (int b = 0; b < kBatches; ++b) {
        const std::vector<Record> records = {make_record(w * 1000 + b * 2, 100),
                                             make_record(w * 1000 + b * 2 + 1, 100)};
        if (!db->put_records(*id, records)) _exit(3);
      }
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    CHECK(status == 0);
  }
  Database db = open_or_die(path);
  CHECK(db.list_tasks().value().size() == 1);
  CHECK(db.stats().value().num_records == kWriters * kBatches * 2);
}

}  // namespace
}  // namespace prunerc
