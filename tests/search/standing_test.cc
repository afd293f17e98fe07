// Which of a candidate's records counts: no time of a busy machine, no verdict that was overthrown.
#include "search/record/standing.h"

#include "ir/equal.h"
#include "search/record/database.h"
#include "search/tune/finals.h"
#include "search/tune/tuner.h"
#include "tests/search/programs.h"
#include "tests/search/records.h"
#include "tests/support/check.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <string>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

Measurement timed(double median_ns, double reference_ns, bool disturbed = false) {
  Measurement m;
  m.status = MeasureStatus::kOk;
  m.samples_ns = {median_ns};
  summarize_samples(m);
  m.evidence = "compared";
  m.machine = {reference_ns, 3.5, 0.25};
  m.disturbed = disturbed;
  return m;
}

TEST_CASE("the latest measurement counts unless the machine was slowed down then") {
  const auto chosen = [](const std::vector<Measurement>& ms) {
    double quiet_ns = 0;
    for (const Measurement& m : ms) quiet_ns = quieter(quiet_ns, m.machine.reference_ns);
    return standing(ms, quiet_ns);
  };
  CHECK(chosen({timed(60, 500)}) == 0);
  CHECK(chosen({timed(60, 500), timed(62, 510)}) == 1);
  CHECK(chosen({timed(60, 500), timed(103, 900)}) == 0);
  CHECK(chosen({timed(103, 900), timed(60, 500)}) == 1);
  CHECK(chosen({timed(60, 500), timed(103, 510, true)}) == 0);
  // Nothing is known of the first, and nobody says that the machine was busy.
  CHECK(chosen({timed(60, 0), timed(70, 500)}) == 1);
  CHECK(chosen({timed(60, 0), timed(103, 500, true)}) == 0);
  // All slowed down: the closest upper bound.
  CHECK(chosen({timed(90, 0, true), timed(80, 0, true), timed(95, 0, true)}) == 1);
}

TEST_CASE("clocks that wander slow nothing down") {
  CHECK_FALSE(is_slowed(timed(1, 580), 500));
  CHECK(is_slowed(timed(1, 620), 500));
  CHECK_FALSE(is_slowed(timed(1, 0), 500));
  CHECK_FALSE(is_slowed(timed(1, 620), 0));
  CHECK(quieter(0, 5) == 5);
  CHECK(quieter(7, 5) == 5);
}

Record record_of(uint64_t candidate, const Measurement& m) {
  Record record;
  record.fingerprint = Fingerprint{1, candidate}.to_string();
  record.trace = "parallel(@L0)\n";
  record.measurement = m;
  record.platform = "cpu";
  return record;
}

TEST_CASE(
    "a store's best is not replaced by a time from a busy machine, and says what it was like") {
  Result<Database> db = Database::open(":memory:");
  REQUIRE_OK(db);
  const int64_t id = db->put_task(make_test_task("gemm")).value();
  const std::vector<Record> records = {
      record_of(1, timed(60'000, 500)),
      record_of(2, timed(80'000, 500)),
      record_of(1, timed(103'000, 990)),  // the first stands
      record_of(2, timed(75'000, 505)),   // on a quiet machine: stands
      record_of(3, timed(40'000, 500)),
      record_of(3, timed(90'000, 510)),  // the one before was luck
  };
  REQUIRE_OK(db->put_records(id, records));
  const std::optional<Record> best = db->best(id).value();
  REQUIRE(best);
  CHECK(best->measurement == records[0].measurement);
  CHECK(best->measurement.machine.reference_ns == 500);
  std::vector<double> times;
  const std::vector<Record> top = db->top_k(id, 10).value();
  for (const Record& record : top) times.push_back(record.measurement.median_ns);
  CHECK(times == std::vector<double>{60'000, 75'000, 90'000});
  // The exchange form keeps it, and does without.
  std::stringstream lines;
  REQUIRE_OK(db->export_lines(lines));
  CHECK(lines.str().find("\"reference_ns\":990") != std::string::npos);
  Result<Database> other = Database::open(":memory:");
  REQUIRE_OK(other);
  std::string text = lines.str();
  const std::size_t at = text.find("\"machine\":{");
  text.erase(at, text.find('}', at) + 2 - at);
  std::istringstream in(text);
  const Result<ImportCounts> counts = other->import_lines(in, "lines");
  REQUIRE_OK(counts);
  CHECK(counts->num_records == 6);
  const std::vector<Record> back = other->records(1).value();
  CHECK(back[0].measurement.machine == MachineState{});
  CHECK(back[2].measurement.machine == records[2].measurement.machine);
}

TEST_CASE("a later time that nobody verified leaves its candidate verified") {
  Result<Database> db = Database::open(":memory:");
  REQUIRE_OK(db);
  const int64_t id = db->put_task(make_test_task("gemm")).value();
  // As another process stores what did not win there.
  Measurement unverified = timed(62'000, 505);
  unverified.evidence.clear();
  const std::vector<Record> records = {record_of(1, timed(60'000, 500)), record_of(1, unverified),
                                       record_of(2, timed(80'000, 500)), record_of(3, unverified)};
  REQUIRE_OK(db->put_records(id, records));
  const std::vector<Record> verified = db->verified(id, 10).value();
  REQUIRE(verified.size() == 2);
  CHECK(verified[0].fingerprint == records[0].fingerprint);
  CHECK(verified[0].measurement.median_ns == 62'000);
  CHECK(verified[0].measurement.evidence == "compared");
  CHECK(evidence_of(std::vector<Measurement>{unverified}).empty());
}

TEST_CASE("what is wrong alone is wrong within a network, and a time-out is not") {
  Database db = open_or_die(":memory:");
  const Task alone = make_test_task("gemm");
  ir::Target target = alone.target;
  target.network = std::string(32, 'a');
  target.constants_bytes = 1 << 20;
  const Task within = make_task("gemm", alone.base, target);
  REQUIRE_FALSE(within.key == alone.key);
  const Task other = make_test_task("gemm", 1);  // of another number of threads
  std::vector<int64_t> ids;
  const Record record = make_record(1, 100000);
  for (const Task* task : {&alone, &within, &other}) {
    ids.push_back(db.put_task(*task).value());
    REQUIRE_OK(db.put_records(ids.back(), {&record, 1}));
  }
  const auto num_verified = [&] {
    return std::count_if(ids.begin(), ids.end(),
                         [&](int64_t id) { return db.best(id).value().has_value(); });
  };
  Measurement verdict;
  verdict.status = MeasureStatus::kTimeout;
  REQUIRE_OK(db.put_verdict(ids[2], record.fingerprint, verdict));
  CHECK(num_verified() == 2);
  verdict.status = MeasureStatus::kWrongResult;
  CHECK_FALSE(db.is_refuted(ids[0], record.fingerprint).value());
  REQUIRE_OK(db.put_verdict(ids[0], record.fingerprint, verdict));
  CHECK(num_verified() == 0);
  // Also of what is timed there afterwards.
  REQUIRE_OK(db.put_records(ids[1], {&record, 1}));
  CHECK(db.is_refuted(ids[1], record.fingerprint).value());
  CHECK(num_verified() == 0);
  CHECK(db.top_k(ids[1], 1)->empty());
  CHECK(db.is_refuted(ids[0], record.fingerprint).value());
  CHECK_FALSE(db.is_refuted(ids[2], record.fingerprint).value());
  CHECK_FALSE(db.is_refuted(ids[1], make_record(2, 100000).fingerprint).value());
}

TEST_CASE("a task that is added later has part in what is refuted of its kernels") {
  Database db = open_or_die(":memory:");
  const Task alone = make_test_task("gemm");
  ir::Target target = alone.target;
  target.network = std::string(32, 'a');
  Record record = make_record(1, 100000);
  record.measurement.status = MeasureStatus::kWrongResult;
  const int64_t first = db.put_task(alone).value();
  REQUIRE_OK(db.put_records(first, {&record, 1}));
  CHECK(db.is_refuted(first, record.fingerprint).value());
  const int64_t second = db.put_task(make_task("gemm", alone.base, target)).value();
  CHECK(db.is_refuted(second, record.fingerprint).value());
}

TEST_CASE("what a file says is wrong refutes nothing here") {
  Database there = open_or_die(":memory:");
  Record record = make_record(1, 100000);
  record.measurement.status = MeasureStatus::kWrongResult;
  const int64_t id = there.put_task(make_test_task("gemm")).value();
  REQUIRE_OK(there.put_records(id, {&record, 1}));
  CHECK(there.is_refuted(id, record.fingerprint).value());
  Database db = open_or_die(":memory:");
  REQUIRE_OK(import_text(db, lines_of(there)));
  REQUIRE(db.records(id).value().size() == 1);
  CHECK_FALSE(db.is_refuted(id, record.fingerprint).value());
}

TEST_CASE("a search that goes on does not verify again what was timed once more since") {
  Result<Database> db = Database::open(":memory:");
  REQUIRE_OK(db);
  std::map<std::string, int> comparisons;
  TableMeasurer measurer([&](const MeasureInput& input) {
    if (input.kind == MeasureKind::kVerify) {
      ++comparisons[ir::fingerprint(input.program).to_string()];
    }
    return hashed_time(input);
  });
  TuneOptions options;
  options.trials = 8;
  options.num_threads = 1;
  options.check = {};
  const std::vector<Task> tasks = {make_test_task("gemm")};
  REQUIRE_OK(tune(tasks, measurer, *db, options));
  Record again = db->best(1).value().value();
  again.measurement.evidence.clear();
  REQUIRE_OK(db->put_records(1, {&again, 1}));
  comparisons.clear();
  REQUIRE_OK(tune(tasks, measurer, *db, options));
  CHECK(comparisons[again.fingerprint] == 0);
}

TEST_CASE("a search that goes on starts from no record that was found wrong") {
  Result<Database> db = Database::open(":memory:");
  REQUIRE_OK(db);
  std::map<std::string, int> times;
  TableMeasurer measurer([&](const MeasureInput& input) {
    ++times[ir::fingerprint(input.program).to_string()];
    return hashed_time(input);
  });
  TuneOptions options;
  options.trials = 8;
  options.num_threads = 1;
  options.check = {};
  const std::vector<Task> tasks = {make_test_task("gemm")};
  REQUIRE_OK(tune(tasks, measurer, *db, options));
  const Record best = db->best(1).value().value();
  Measurement verdict;
  verdict.status = MeasureStatus::kWrongResult;
  REQUIRE_OK(db->put_verdict(1, best.fingerprint, verdict));
  // Timed once more since, as right.
  REQUIRE_OK(db->put_records(1, {&best, 1}));
  times.clear();
  const Result<TuneReport> again = tune(tasks, measurer, *db, options);
  REQUIRE_OK(again);
  CHECK(again->tasks[0].best.fingerprint != best.fingerprint);
  CHECK(times[best.fingerprint] == 0);
}

TEST_CASE("finals on a machine that became busy leave the times of the search standing") {
  Result<Database> db = Database::open(":memory:");
  REQUIRE_OK(db);
  std::map<std::string, int> times;
  double fastest = 1e30;
  TableMeasurer measurer([&](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    if (input.kind != MeasureKind::kTime) return m;
    const bool is_final = times[ir::fingerprint(input.program).to_string()]++ > 0;
    fastest = std::min(fastest, m.median_ns);
    m.machine.reference_ns = is_final ? 900 : 500;
    if (is_final) m.samples_ns = {1.7 * m.median_ns};
    summarize_samples(m);
    return m;
  });
  TuneOptions options;
  options.trials = 16;
  options.batch = 8;
  options.num_threads = 1;
  options.check = {};
  const Result<TuneReport> report =
      tune(std::vector<Task>{make_test_task("gemm")}, measurer, *db, options);
  REQUIRE_OK(report);
  CHECK(report->tasks[0].best_ns == fastest);
  CHECK_FALSE(report->tasks[0].slowed);
  CHECK(db->best(1).value()->measurement.median_ns == fastest);
  // A run that goes on starts from it.
  options.trials = 8;
  const Result<TuneReport> again =
      tune(std::vector<Task>{make_test_task("gemm")}, measurer, *db, options);
  REQUIRE_OK(again);
  CHECK(again->tasks[0].best_ns <= fastest);
}

}  // namespace
}  // namespace prunerc
