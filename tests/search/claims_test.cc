// Tuning with imported records: they are measured first, and win by nothing that they say.
#include "ir/equal.h"
#include "search/tune/tuner.h"
#include "tests/search/programs.h"
#include "tests/search/records.h"
#include "tests/support/check.h"

#include <algorithm>
#include <sstream>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

TuneOptions small_options(int64_t trials) {
  TuneOptions options;
  options.trials = trials;
  options.batch = 8;
  options.seed = 11;
  options.num_threads = 1;
  options.strategy = StrategyKind::kRandom;
  options.check = {};
  options.finals = 0;
  return options;
}

// What a search of another database found, with forged times.
std::string forged_lines(double ns) {
  Database there = open_or_die(":memory:");
  TableMeasurer measurer(hashed_time);
  const Task task = make_test_task("gemm");
  REQUIRE_OK(tune({&task, 1}, measurer, there, small_options(8)));
  std::stringstream lines;
  Database forged = open_or_die(":memory:");
  std::vector<Record> records = there.records(1).value();
  for (Record& record : records) {
    record.measurement.samples_ns = {ns};
    record.measurement.evidence = "trust me";
    summarize_samples(record.measurement);
  }
  REQUIRE_OK(forged.put_task(task));
  REQUIRE_OK(forged.put_records(1, records));
  REQUIRE_OK(forged.export_lines(lines));
  return lines.str();
}

Database with_claims(double ns) {
  Database db = open_or_die(":memory:");
  std::stringstream lines(forged_lines(ns));
  REQUIRE_OK(db.import_lines(lines, "lines"));
  return db;
}

TEST_CASE(
    "a search begins with what was imported, measures and verifies it, and believes nothing") {
  for (const int64_t trials : {3, 8, 20}) {
    Database db = with_claims(2000);
    TableMeasurer measurer(hashed_time);
    const Task task = make_test_task("gemm");
    const Result<TuneReport> report = tune({&task, 1}, measurer, db, small_options(trials));
    REQUIRE_OK(report);
    CHECK(report->tasks[0].trials == trials);
    CHECK(report->tasks[0].reused == 0);
    CHECK(report->tasks[0].evidence != "trust me");
    CHECK(measurer.num_verified >= 1);
    const Record best = db.best(1).value().value();
    CHECK_FALSE(best.imported);
    CHECK(best.measurement.median_ns == report->tasks[0].best_ns);
    const int64_t left = std::max<int64_t>(0, 8 - trials);
    CHECK(static_cast<int64_t>(db.claims(1, 100)->size()) == left);
  }
}

TEST_CASE("imported records that give no program leave room for others") {
  Database db = with_claims(3000);
  Database older = open_or_die(":memory:");
  const int64_t id = older.put_task(make_test_task("gemm")).value();
  for (int64_t n = 1; n <= 20; ++n) {
    const Record stale = make_record(n, 2500);
    REQUIRE_OK(older.put_records(id, {&stale, 1}));
  }
  REQUIRE_OK(import_text(db, lines_of(older)));
  TableMeasurer measurer(hashed_time);
  const Task task = make_test_task("gemm");
  TuneOptions options = small_options(8);
  options.claims_only = true;
  const Result<TuneReport> report = tune({&task, 1}, measurer, db, options);
  REQUIRE_OK(report);
  CHECK(report->tasks[0].trials == 8);
  CHECK(report->tasks[0].verified);
  CHECK(report->tasks[0].left_aside.num == 20);
}

TEST_CASE("claims are trials of what all operators have together") {
  Database db = with_claims(2000);
  TableMeasurer measurer(hashed_time);
  const std::vector<Task> tasks = {make_test_task("gemm"), make_test_task("row_sum")};
  TuneOptions options = small_options(0);
  options.total_trials = 6;
  const Result<TuneReport> report = tune(tasks, measurer, db, options);
  REQUIRE_OK(report);
  CHECK(report->tasks[0].trials + report->tasks[1].trials == 6);
  CHECK(report->tasks[0].trials == 3);
  CHECK(db.claims(1, 100)->size() == 5);
  CHECK(report->tasks[1].best_ns > 0);
}

TEST_CASE("imported records alone can be measured, without a search") {
  Database db = with_claims(2000);
  TableMeasurer measurer(hashed_time);
  const Task task = make_test_task("gemm");
  TuneOptions options = small_options(0);
  options.claims_only = true;
  const Result<TuneReport> report = tune({&task, 1}, measurer, db, options);
  REQUIRE_OK(report);
  CHECK(report->tasks[0].trials == 8);
  CHECK(db.best(1)->has_value());
  CHECK(db.claims(1, 100)->empty());
}

TEST_CASE("a claim that is not equal to its task is neither built nor believed") {
  Database db = with_claims(2000);
  TableMeasurer measurer(hashed_time);
  const Task task = make_test_task("gemm");
  TuneOptions options = small_options(0);
  options.claims_only = true;
  options.check = [](const Task&, const schedule::Trace&, double, uint64_t) {
    EqualityResult out;
    out.verdict.kind = ir::VerdictKind::kNotEqual;
    return out;
  };
  const Result<TuneReport> report = tune({&task, 1}, measurer, db, options);
  REQUIRE_OK(report);
  CHECK(measurer.num_timed == 0);
  CHECK(report->tasks[0].best_ns == 0);
  CHECK_FALSE(db.best(1)->has_value());
  CHECK(db.claims(1, 100)->empty());
}

TEST_CASE("of stored times that nobody has verified the one that is right is found, however slow") {
  Database db = open_or_die(":memory:");
  const Task task = make_test_task("gemm");
  TableMeasurer unable([](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    if (input.kind == MeasureKind::kVerify) m.status = MeasureStatus::kRunError;
    return m;
  });
  REQUIRE_OK(tune({&task, 1}, unable, db, small_options(24)));
  std::vector<Record> stored = db.top_k(1, 100).value();
  REQUIRE(stored.size() == 24);
  const std::string right = stored.back().fingerprint;
  TableMeasurer measurer([&](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    const bool is_right = ir::fingerprint(input.program).to_string() == right;
    if (input.kind == MeasureKind::kVerify && !is_right) m.status = MeasureStatus::kWrongResult;
    return m;
  });
  const Result<TuneReport> report = tune({&task, 1}, measurer, db, small_options(1));
  REQUIRE_OK(report);
  CHECK(report->tasks[0].best.fingerprint == right);
  CHECK(db.best(1).value()->fingerprint == right);
}

TEST_CASE("without a verdict in finite fields the evidence says so") {
  Database db = open_or_die(":memory:");
  TableMeasurer measurer(hashed_time);
  const Task task = make_test_task("gemm");
  TuneOptions options = small_options(4);
  options.check = [](const Task&, const schedule::Trace&, double, uint64_t) {
    EqualityResult out;
    out.verdict.text = "arithmetic on infinities";
    return out;
  };
  const Result<TuneReport> report = tune({&task, 1}, measurer, db, options);
  REQUIRE_OK(report);
  const std::string said =
      "; these values alone: finite fields gave no verdict (arithmetic on infinities)";
  CHECK(report->tasks[0].evidence.ends_with(said));
  CHECK(db.best(1).value()->measurement.evidence.ends_with(said));
}

}  // namespace
}  // namespace prunerc
