// What lines of a file may do to a database: nothing, until they are shown to be true.
#include "schedule/schedule.h"
#include "search/record/database.h"
#include "search/record/restore.h"
#include "search/space/space.h"
#include "tests/search/programs.h"
#include "tests/search/records.h"
#include "tests/support/check.h"

#include <sqlite3.h>

#include <algorithm>
#include <istream>
#include <sstream>
#include <string>
#include <vector>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

// A line of a candidate of gemm.
std::string line_of(const Record& record) {
  Database db = open_or_die(":memory:");
  const int64_t id = db.put_task(make_test_task("gemm")).value();
  REQUIRE_OK(db.put_records(id, {&record, 1}));
  return lines_of(db);
}

// The line with another value of a member, as JSON text.
std::string with(const std::string& line, const std::string& key, const std::string& value) {
  const std::size_t at = line.find("\"" + key + "\":") + key.size() + 3;
  const std::size_t end = std::min(line.find(",\"", at), line.find("}\n", at));
  return line.substr(0, at) + value + line.substr(end);
}

TEST_CASE("JSON lines carry everything but trust, and importing twice adds nothing") {
  Database from = open_or_die(fresh_path("export"));
  const int64_t id = from.put_task(make_test_task("gemm")).value();
  std::vector<Record> records = {make_record(1, 100000.25), make_record(2, 200000.125, false)};
  // The first again within the same second, as the finals measure it.
  records.push_back(records[0]);
  records[2].measurement.samples_ns = {100000.5, 100000.75};
  summarize_samples(records[2].measurement);
  for (Record& record : records) record.created = "2026-11-22T10:00:00Z";
  REQUIRE_OK(from.put_records(id, records));
  const std::string lines = lines_of(from);

  Database to = open_or_die(fresh_path("import"));
  CHECK(import_text(to, lines)->num_records == 3);
  CHECK(import_text(to, lines)->num_known == 3);
  // Who has a record as its own keeps it so.
  CHECK(import_text(from, lines)->num_known == 3);
  CHECK(from.best(id).value()->measurement == records[2].measurement);
  const std::optional<int64_t> found = to.find_task(make_test_task("gemm").key).value();
  REQUIRE(found.has_value());
  CHECK(to.records(*found).value()[1].measurement == records[1].measurement);
  std::string again = lines_of(to);
  const std::string mark = ",\"imported\":true";
  for (std::size_t at = 0; (at = again.find(mark)) != std::string::npos;)
    again.erase(at, mark.size());
  CHECK(again == lines);
}

TEST_CASE(
    "an imported record is a claim: it neither wins nor takes anything from what was measured") {
  Database db = open_or_die(fresh_path("claims"));
  const int64_t id = db.put_task(make_test_task("gemm")).value();
  const Record own = make_record(1, 300000);
  REQUIRE_OK(db.put_records(id, {&own, 1}));
  Record same = make_record(1, 900000);  // a later time of the same candidate
  Record forged = make_record(2, 50000);
  forged.measurement.evidence = "trust me";
  Record slower = make_record(3, 60000);
  REQUIRE_OK(import_text(db, line_of(same) + line_of(slower) + line_of(forged)));
  CHECK(db.best(id).value()->measurement == own.measurement);
  REQUIRE(db.top_k(id, 10)->size() == 1);
  const std::vector<Record> claims = db.claims(id, 10).value();
  REQUIRE(claims.size() == 2);
  CHECK(claims[0].fingerprint == forged.fingerprint);
  CHECK(claims[0].imported);
  CHECK_FALSE(claims[0].verified());
  CHECK(db.claims(id, 1)->size() == 1);
  const TaskRow row = db.list_tasks().value()[0];
  CHECK(row.claimed_ns == 50000);
  CHECK(row.num_imported == 3);
  CHECK(db.stats()->num_verified == 1);
  CHECK(db.stats()->num_imported == 3);
  const std::vector<Finding> findings = db.validate().value();
  REQUIRE(findings.size() == 3);
  CHECK(findings[0].is_claim);
  CHECK(findings[0].problem.find("not checked here") != std::string::npos);
}

TEST_CASE("a claim is settled once its candidate was measured here, and a wrong one is no claim") {
  Database db = open_or_die(fresh_path("settled"));
  const Record first = make_record(1, 100000);
  REQUIRE_OK(import_text(db, line_of(first) + line_of(make_record(2, 200000))));
  const int64_t id = db.find_task(make_test_task("gemm").key).value().value();
  CHECK(db.claims(id, 10)->size() == 2);
  CHECK_FALSE(db.best(id)->has_value());
  REQUIRE_OK(db.put_records(id, {&first, 1}));
  CHECK(db.claims(id, 10)->size() == 1);
  CHECK(db.best(id).value()->measurement == first.measurement);
  // A verdict says nothing of the time that a file claims.
  Measurement verdict;
  verdict.status = MeasureStatus::kOk;
  verdict.evidence = "4096 outputs agree";
  const std::string second = make_record(2, 0).fingerprint;
  REQUIRE_OK(db.put_verdict(id, second, verdict));
  CHECK(db.claims(id, 10).value()[0].measurement.evidence == "all outputs agree");
  verdict.status = MeasureStatus::kNotEqual;
  REQUIRE_OK(db.put_verdict(id, second, verdict));
  CHECK(db.claims(id, 10)->empty());
}

TEST_CASE("the best that is exported is one that still gives its program") {
  Database db = open_or_die(":memory:");
  const Task task = make_test_task("gemm");
  const int64_t id = db.put_task(task).value();
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  const Result<Candidate> candidate = heuristic_candidate(task, *space);
  REQUIRE_OK(candidate);
  Record kept = make_record(1, 200000);
  kept.fingerprint = candidate->fingerprint.to_string();
  kept.trace = schedule::print(candidate->trace);
  // Faster, of another build: its trace makes another program by now.
  const std::vector<Record> records = {make_record(2, 100000), kept};
  REQUIRE_OK(db.put_records(id, records));
  const std::string best = lines_of(db, Export::kBest);
  CHECK(best.find(kept.fingerprint) != std::string::npos);
  CHECK(best.find(records[0].fingerprint) == std::string::npos);
  CHECK(std::count(best.begin(), best.end(), '\n') == 1);
  // What lists show is the same, also of claims.
  const TaskRow row = db.list_tasks().value()[0];
  CHECK(db.best_kept(row).value()->record.fingerprint == kept.fingerprint);
  CHECK(db.best_kept(row).value()->stale.empty());
  CHECK_FALSE(db.claim_kept(row).value().has_value());
  Database claims = open_or_die(":memory:");
  REQUIRE_OK(import_text(claims, line_of(records[0])));
  const TaskRow claimed = claims.list_tasks().value()[0];
  CHECK(claims.claim_kept(claimed).value()->record.fingerprint == records[0].fingerprint);
  CHECK(claims.claim_kept(claimed).value()->stale.find("gives no program") != std::string::npos);
  REQUIRE_OK(import_text(claims, line_of(kept)));
  CHECK(claims.claim_kept(claimed).value()->record.fingerprint == kept.fingerprint);
  CHECK_FALSE(claims.best_kept(claimed).value().has_value());
}

TEST_CASE("a record that gives another program, or none, says so") {
  const Task task = make_test_task("gemm");
  const Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  const Result<Candidate> candidate = heuristic_candidate(task, *space);
  REQUIRE_OK(candidate);
  Record record = make_record(1, 200000);
  record.id = 7;
  record.version = "0.0.9";
  record.trace = schedule::print(candidate->trace);
  const Result<RestoredRecord> other = restore_record(task.base, record);
  CHECK_DIAG(other, RecordStale);
  CHECK(other.error().message() ==
        "record 7 of prunerc 0.0.9 gives no program in this build: its schedule does not make the "
        "program that it names");
  record.trace = "no primitive";
  const Result<RestoredRecord> none = restore_record(task.base, record);
  CHECK_DIAG(none, RecordStale);
  record.trace = schedule::print(candidate->trace);
  record.fingerprint = candidate->fingerprint.to_string();
  CHECK(restore_record(task.base, record).ok());
  LeftAside left, all;
  CHECK(to_string(left).empty());
  left.add(other.error());
  left.add(none.error());
  all.add(left);
  CHECK(to_string(all) == "2 stored record(s) left aside: " + other.error().message());
}

TEST_CASE("lines of several tasks come to their own, which the first of them names") {
  Database from = open_or_die(":memory:");
  const std::vector<Record> records = {make_record(1, 100000), make_record(2, 200000)};
  std::vector<std::string> lines;
  for (const char* name : {"gemm", "row_sum"}) {
    const int64_t id = from.put_task(make_test_task(name)).value();
    REQUIRE_OK(from.put_records(id, records));
  }
  std::istringstream all(lines_of(from));
  for (std::string line; std::getline(all, line);) lines.push_back(line + "\n");
  REQUIRE(lines.size() == 4);
  Database db = open_or_die(":memory:");
  const std::string other = with(lines[1], "op", "\"other\"");
  REQUIRE_OK(import_text(db, lines[2] + lines[0] + lines[3] + other));
  const std::vector<TaskRow> tasks = db.list_tasks().value();
  REQUIRE(tasks.size() == 2);
  CHECK(tasks[0].name == make_test_task("row_sum").name);
  CHECK(tasks[1].name == make_test_task("gemm").name);
  for (const TaskRow& task : tasks) CHECK(task.num_records == 2);
  CHECK(db.find_task(make_test_task("gemm").key).value() == tasks[1].id);
}

// Lines that say, once all are read, whether another process could write just then.
class WatchedLines final : public std::stringbuf {
 public:
  WatchedLines(const std::string& text, sqlite3* writer) : std::stringbuf(text), writer_(writer) {}
  bool is_writable() const { return is_writable_; }

 protected:
  int_type underflow() override {
    const int_type next = std::stringbuf::underflow();
    if (next == traits_type::eof()) {
      const char* const write = "BEGIN IMMEDIATE; ROLLBACK";
      is_writable_ = sqlite3_exec(writer_, write, nullptr, nullptr, nullptr) == SQLITE_OK;
    }
    return next;
  }

 private:
  sqlite3* writer_;
  bool is_writable_ = false;
};

TEST_CASE("lines are examined before the store is locked") {
  const std::string path = fresh_path("import_lock");
  Database db = open_or_die(path);
  sqlite3* other = nullptr;
  REQUIRE(sqlite3_open(path.c_str(), &other) == SQLITE_OK);
  WatchedLines lines(line_of(make_record(1, 100000)), other);
  std::istream in(&lines);
  CHECK(db.import_lines(in, "lines")->num_records == 1);
  CHECK(lines.is_writable());
  sqlite3_close(other);
}

TEST_CASE(
    "a line that is no record is refused with its number and the reason, and nothing is stored") {
  const std::string good = line_of(make_record(1, 100000));
  const struct {
    std::string line, why;
  } cases[] = {
      {"not json\n", "no JSON object"},
      {"[1, 2]\n", "no JSON object"},
      {"\xff\xfe\n", "no JSON object"},
      {good.substr(0, good.size() / 2) + "\n", "no JSON object"},
      {"{\"schema\": 1}\n", "there is no 'op'"},
      {with(good, "schema", "99"), "'schema' is not 1"},
      {with(good, "seed", "-1"), "'seed' is no whole number"},
      {with(good, "trace", "{}"), "'trace' is no text"},
      {with(good, "trace", "\"fly(@L0)\""), "its trace: "},
      {with(good, "build", "true"), "of 'seconds': 'build' is no number"},
      {with(good, "status", "\"fine\""), "'status' is none"},
      {with(good, "samples_ns", "[]"), "no samples"},
      {with(good, "samples_ns", "[-5]"), "not all positive"},
      {with(good, "median_ns", "-3"), "'median_ns' is negative"},
      {with(good, "median_ns", "1e-9"),
       "'median_ns' is 1e-09, the median of its samples is 100000"},
      {with(with(good, "median_ns", "1e-9"), "samples_ns", "[1e-9]"),
       "no machine of its target is so fast"},
      {with(good, "fingerprint", "\"../../x\""), "'fingerprint' is not 32"},
      {with(good, "op", "\"a\\u001b[2J\""), "'op' has control characters"},
      {with(good, "hash", "\"" + std::string(32, '0') + "\""), "'hash' is not that"},
      {with(good, "program", "\"program p( {\""), "its program or target: "},
      {with(good, "target", "\"cpu:abacus\""), "its program or target: a target is one of"},
  };
  for (const auto& one : cases) {
    INFO(one.line << " for " << one.why);
    Database db = open_or_die(":memory:");
    const Result<ImportCounts> counts = import_text(db, good + "\n" + one.line + good);
    CHECK_DIAG(counts, RecordImport);
    if (counts.ok()) continue;
    CHECK(counts.error().message().find("line 3 of 'records.jsonl'") != std::string::npos);
    CHECK(counts.error().message().find(one.why) != std::string::npos);
    CHECK(db.list_tasks()->empty());
  }
}

}  // namespace
}  // namespace prunerc
