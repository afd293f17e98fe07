#include "search/tune/tuner.h"

#include "costmodel/latency/roofline.h"
#include "ir/equal.h"
#include "schedule/schedule.h"
#include "search/space/space.h"
#include "search/tune/finals.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <set>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

Database memory_db() {
  Result<Database> db = Database::open(":memory:");
  REQUIRE_OK(db);
  return std::move(db).value();
}

std::vector<Record> records_of(Database& db) {
  Result<std::vector<Record>> records = db.records(1);
  REQUIRE_OK(records);
  return std::move(records).value();
}

struct Outcome {
  std::string log;
  TuneReport report;
};

Outcome run(std::vector<Task> tasks, Measurer& measurer, Database& db, TuneOptions options) {
  Outcome out;
  options.log = [&](std::string_view line) { out.log += std::string(line) + "\n"; };
  Result<TuneReport> report = tune(tasks, measurer, db, options);
  REQUIRE_OK(report);
  out.report = std::move(report).value();
  return out;
}

TuneOptions small_options(int64_t trials) {
  TuneOptions options;
  options.trials = trials;
  options.batch = 8;
  options.seed = 11;
  options.num_threads = 1;
  options.check = {};  // most tests are about something else
  return options;
}

TEST_CASE("same seed and same times give the same search, byte for byte, for 1 and 2 threads") {
  for (const StrategyKind kind : {StrategyKind::kEvolution, StrategyKind::kRandom}) {
    std::string first;
    for (const int num_threads : {1, 2, 1}) {
      // The second run also answers in another order.
      TableMeasurer measurer(hashed_time, num_threads == 2);
      Database db = memory_db();
      TuneOptions options = small_options(40);
      options.strategy = kind;
      options.num_threads = num_threads;
      if (kind == StrategyKind::kRandom) options.check = check_on_twin;
      const Outcome out =
          run({make_test_task("gemm"), make_test_task("conv2d_relu")}, measurer, db, options);
      if (first.empty()) first = out.log;
      CHECK(out.log == first);
      CHECK(std::count(first.begin(), first.end(), '\n') >= 160);
    }
  }
}

// How many trials each "ask" of the log belongs to, task by task, in the order of asking.
std::vector<int> asked_tasks(const std::string& log) {
  std::vector<int> out;
  for (std::size_t at = 0; at < log.size(); at = log.find('\n', at) + 1) {
    if (log.compare(at, 4, "ask ") == 0) out.push_back(std::stoi(log.substr(at + 4)));
  }
  return out;
}

TEST_CASE("first batches of several tasks are small, then the rest goes where it gains most") {
  std::string first;
  for (const int num_threads : {1, 2}) {
    TableMeasurer measurer(hashed_time, num_threads == 2);
    Database db = memory_db();
    TuneOptions options = small_options(0);
    options.total_trials = 40;
    options.first_batch = 2;
    options.num_threads = num_threads;
    options.finals = 0;
    std::vector<Task> tasks = {make_test_task("gemm"), make_test_task("conv2d_relu"),
                               make_test_task("row_sum")};
    tasks[1].weight = 20;
    const Outcome out = run(tasks, measurer, db, options);
    if (first.empty()) first = out.log;
    CHECK(out.log == first);
    const std::vector<int> asked = asked_tasks(out.log);
    REQUIRE(asked.size() == 40);
    CHECK(std::vector<int>(asked.begin(), asked.begin() + 6) == std::vector<int>{0, 0, 1, 1, 2, 2});
    // One task alone weighs nearly everything: full batches, of this task.
    CHECK(std::count(asked.begin() + 6, asked.end(), 1) >= 24);
    for (const TaskReport& report : out.report.tasks) CHECK(report.best_ns > 0);
  }
}

TEST_CASE("a first batch is the strategy's own, never more than a batch, and whole for one task") {
  CHECK(rhythm_of(StrategyKind::kPruner).first < rhythm_of(StrategyKind::kPruner).batch);
  // The published searches keep to their batches.
  for (const StrategyKind kind : {StrategyKind::kAnsor, StrategyKind::kMetaSchedule,
                                  StrategyKind::kPrunerPaper, StrategyKind::kRandom}) {
    CHECK(rhythm_of(kind).first == rhythm_of(kind).batch);
  }
  for (const bool is_alone : {true, false}) {
    TableMeasurer measurer(hashed_time);
    Database db = memory_db();
    TuneOptions options = small_options(24);
    options.first_batch = is_alone ? 2 : 64;
    options.batches_in_flight = 1;
    options.finals = 0;
    std::vector<Task> tasks = {make_test_task("gemm")};
    if (!is_alone) tasks.push_back(make_test_task("conv2d_relu"));
    const Outcome out = run(tasks, measurer, db, options);
    const std::vector<int> asked = asked_tasks(out.log);
    CHECK(std::count(asked.begin(), asked.begin() + 8, 0) == 8);
  }
}

TEST_CASE("another seed gives another search") {
  std::set<std::string> logs;
  for (const uint64_t seed : {1, 2, 3}) {
    TableMeasurer measurer(hashed_time);
    Database db = memory_db();
    TuneOptions options = small_options(24);
    options.seed = seed;
    logs.insert(run({make_test_task("gemm")}, measurer, db, options).log);
  }
  CHECK(logs.size() == 3);
}

TEST_CASE("no candidate is measured twice, and every one is stored") {
  TableMeasurer measurer(hashed_time);
  Database db = memory_db();
  TuneOptions options = small_options(48);
  options.finals = 0;
  const Outcome out = run({make_test_task("gemm")}, measurer, db, options);
  CHECK(out.report.tasks[0].trials == 48);
  CHECK(measurer.num_timed == 48);
  const std::vector<Record> stored = records_of(db);
  std::set<std::string> fingerprints;
  for (const Record& record : stored) fingerprints.insert(record.fingerprint);
  CHECK(stored.size() == 48);
  CHECK(fingerprints.size() == 48);
}

TEST_CASE("the report's best is the fastest answer and was verified") {
  TableMeasurer measurer(hashed_time);
  Database db = memory_db();
  TuneOptions options = small_options(32);
  options.finals = 0;
  options.check = check_on_twin;
  const Outcome out = run({make_test_task("dense_relu")}, measurer, db, options);
  const TaskReport& report = out.report.tasks[0];
  double fastest = 1e30;
  for (const Record& record : records_of(db))
    fastest = std::min(fastest, record.measurement.median_ns);
  CHECK(report.best_ns == fastest);
  CHECK(report.verified);
  CHECK(report.evidence.find("compared; on a twin equal (chance of error 2^-") == 0);
  CHECK(report.unchecked == 0);
  CHECK(report.gflops == Approx(2 * 12.0 * 16 * 40 / fastest).epsilon(0.1));
  CHECK(db.best(1).value()->measurement.median_ns == fastest);
  CHECK(report.stop == StopReason::kTrials);
  check_same_result(make_test_task("dense_relu").base, report.best_program, 5);
}

TEST_CASE("a second call resumes: nothing known is measured again") {
  Database db = memory_db();
  TableMeasurer first(hashed_time), second(hashed_time), fresh(hashed_time);
  TuneOptions options = small_options(24);
  options.finals = 0;
  const Outcome one = run({make_test_task("gemm")}, first, db, options);
  const Outcome two = run({make_test_task("gemm")}, second, db, options);
  CHECK(second.num_timed == 24);
  CHECK(two.report.tasks[0].best_ns <= one.report.tasks[0].best_ns);
  std::set<std::string> fingerprints;
  for (const Record& record : records_of(db)) fingerprints.insert(record.fingerprint);
  CHECK(fingerprints.size() == 48);
  options.fresh = true;
  run({make_test_task("gemm")}, fresh, db, options);
  std::set<std::string> after;
  for (const Record& record : records_of(db)) after.insert(record.fingerprint);
  CHECK(after.size() == 48);  // the first search again
}

TEST_CASE("a candidate that computes a wrong result is a row of the breakdown and never wins") {
  int num_lies = 0;
  TableMeasurer measurer([&](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    const bool liar = ir::fingerprint(input.program).low % 3 == 0;
    if (liar && input.kind == MeasureKind::kTime) m.samples_ns = {1};
    if (liar && input.kind == MeasureKind::kVerify) {
      ++num_lies;
      m.status = MeasureStatus::kWrongResult;
      m.detail = "element 3";
      m.evidence.clear();
    }
    summarize_samples(m);
    return m;
  });
  Database db = memory_db();
  const Outcome out = run({make_test_task("gemm")}, measurer, db, small_options(40));
  const TaskReport& report = out.report.tasks[0];
  REQUIRE(num_lies > 0);
  CHECK(report.counts[static_cast<std::size_t>(MeasureStatus::kWrongResult)] == num_lies);
  CHECK(report.best_ns >= 1000);
  CHECK(db.best(1).value()->measurement.median_ns >= 1000);
  CHECK(ir::fingerprint(report.best_program).low % 3 != 0);
}

// Says that some candidates are not equal: asked for with either bound.
EqualityCheck refuting(double bound, std::atomic<int>* num_refuted) {
  return [=](const Task&, const schedule::Trace& trace, double log2_error, uint64_t) {
    EqualityResult out;
    out.verdict.kind = ir::VerdictKind::kEqual;
    const bool is_one = hash_bytes(schedule::print(trace)) % 3 == 0;
    if (log2_error == bound && is_one) {
      out.verdict.kind = ir::VerdictKind::kNotEqual;
      out.verdict.text = "element C[0]";
      ++*num_refuted;
    }
    return out;
  };
}

TEST_CASE("a candidate that is not equal to its task is never built") {
  std::atomic<int> refuted = 0;
  TableMeasurer measurer(hashed_time);
  Database db = memory_db();
  TuneOptions options = small_options(40);
  options.finals = 0;
  options.check = refuting(kDraftLog2Error, &refuted);
  const Outcome out = run({make_test_task("gemm")}, measurer, db, options);
  REQUIRE(refuted > 0);
  CHECK(measurer.num_timed == 40 - refuted);
  CHECK(out.report.tasks[0].counts[static_cast<std::size_t>(MeasureStatus::kNotEqual)] == refuted);
  for (const Record& record : records_of(db)) {
    if (record.measurement.status != MeasureStatus::kNotEqual) continue;
    CHECK(record.measurement.detail == "not equal: element C[0]");
  }
}

TEST_CASE("a candidate that the second check refutes is stored as such and does not win") {
  std::atomic<int> refuted = 0;
  TableMeasurer measurer(hashed_time);
  Database db = memory_db();
  TuneOptions options = small_options(40);
  options.check = refuting(kStoredLog2Error, &refuted);
  const Outcome out = run({make_test_task("gemm")}, measurer, db, options);
  REQUIRE(refuted > 0);
  CHECK(out.report.tasks[0].counts[static_cast<std::size_t>(MeasureStatus::kNotEqual)] == refuted);
  double fastest = 1e30;
  for (const Record& record : records_of(db)) {
    if (record.measurement.ok()) fastest = std::min(fastest, record.measurement.median_ns);
  }
  CHECK(out.report.tasks[0].best_ns == fastest);
}

TEST_CASE("what cannot be checked is counted and goes on to the other checks") {
  TableMeasurer measurer(hashed_time);
  Database db = memory_db();
  TuneOptions options = small_options(16);
  options.finals = 0;
  options.check = [](const Task&, const schedule::Trace&, double, uint64_t) {
    return EqualityResult();
  };
  const Outcome out = run({make_test_task("gemm")}, measurer, db, options);
  CHECK(out.report.tasks[0].unchecked == 16);
  CHECK(measurer.num_timed == 16);
  CHECK(out.report.tasks[0].evidence.starts_with("compared; these values alone: "));
}

TEST_CASE("what a draft cannot decide is proved when it would win, and not before") {
  std::atomic<int> num_proofs = 0;
  TableMeasurer measurer(hashed_time);
  Database db = memory_db();
  TuneOptions options = small_options(40);
  options.finals = 0;
  options.check = [&](const Task&, const schedule::Trace& trace, double log2_error, uint64_t) {
    EqualityResult out;
    if (log2_error == kDraftLog2Error) return out;
    ++num_proofs;
    const bool is_wrong = hash_bytes(schedule::print(trace)) % 3 == 0;
    out.verdict.kind = is_wrong ? ir::VerdictKind::kNotEqual : ir::VerdictKind::kEqual;
    out.verdict.log2_error = log2_error;
    return out;
  };
  const Outcome out = run({make_test_task("gemm")}, measurer, db, options);
  const TaskReport& report = out.report.tasks[0];
  CHECK(report.unchecked == 40);
  CHECK(report.verified);
  CHECK(report.evidence.find("on a twin equal") != std::string::npos);
  CHECK(num_proofs < 40);
  CHECK(num_proofs == static_cast<int>(report.curve.size()) +
                          report.counts[static_cast<std::size_t>(MeasureStatus::kNotEqual)]);
  int num_verified = 0;
  for (const Record& record : records_of(db)) {
    if (record.measurement.ok()) CHECK(record.measurement.median_ns >= report.best_ns);
    num_verified += record.verified() ? 1 : 0;
  }
  CHECK(num_verified == static_cast<int>(report.curve.size()));
}

TEST_CASE("a stored time without evidence is proved by the call that would crown it") {
  Database db = memory_db();
  TableMeasurer unable([](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    if (input.kind == MeasureKind::kVerify) m.status = MeasureStatus::kRunError;
    return m;
  });
  TuneOptions options = small_options(8);
  options.finals = 0;
  run({make_test_task("gemm")}, unable, db, options);
  CHECK_FALSE(db.best(1).value().has_value());
  TableMeasurer measurer(hashed_time);
  std::atomic<int> refuted = 0;
  options.check = refuting(kStoredLog2Error, &refuted);
  options.claims_only = true;  // searches for nothing
  const Outcome out = run({make_test_task("gemm")}, measurer, db, options);
  CHECK(out.report.tasks[0].trials == 0);
  REQUIRE(out.report.tasks[0].verified);
  CHECK(out.report.tasks[0].evidence.find("on a twin equal") != std::string::npos);
}

TEST_CASE("a verification that cannot be done convicts nobody, and nobody wins by it") {
  TableMeasurer measurer([](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    if (input.kind == MeasureKind::kVerify) m.status = MeasureStatus::kRunError;
    return m;
  });
  Database db = memory_db();
  const Outcome out = run({make_test_task("gemm")}, measurer, db, small_options(16));
  CHECK(out.report.tasks[0].best_ns == 0);
  CHECK(out.report.tasks[0].counts[0] == 16);
  CHECK(db.top_k(1, 100).value().size() == 16);
  CHECK_FALSE(db.best(1).value().has_value());
}

TEST_CASE("failures are counted by cause and stop nothing") {
  TableMeasurer measurer([](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    if (input.kind == MeasureKind::kVerify) return m;
    const uint64_t n = ir::fingerprint(input.program).high % 4;
    if (n == 0) m.status = MeasureStatus::kCrash;
    if (n == 1) m.status = MeasureStatus::kTimeout;
    if (!m.ok()) m.median_ns = 0;
    return m;
  });
  Database db = memory_db();
  const Outcome out = run({make_test_task("gemm")}, measurer, db, small_options(64));
  const StatusCounts& counts = out.report.tasks[0].counts;
  int64_t sum = 0;
  for (const int64_t count : counts) sum += count;
  CHECK(sum == 64);
  CHECK(counts[static_cast<std::size_t>(MeasureStatus::kCrash)] > 0);
  CHECK(counts[static_cast<std::size_t>(MeasureStatus::kTimeout)] > 0);
  CHECK(db.stats().value().by_status[static_cast<std::size_t>(MeasureStatus::kCrash)] ==
        counts[static_cast<std::size_t>(MeasureStatus::kCrash)]);
}

TEST_CASE("a task for which nothing runs has no best and no record that could be one") {
  TableMeasurer measurer([](const MeasureInput&) {
    Measurement m;
    m.status = MeasureStatus::kBuildError;
    m.detail = "no";
    return m;
  });
  Database db = memory_db();
  const Outcome out = run({make_test_task("axpy")}, measurer, db, small_options(8));
  CHECK(out.report.tasks[0].best_ns == 0);
  CHECK_FALSE(out.report.tasks[0].best_program.defined());
  CHECK_FALSE(db.best(1).value().has_value());
}

TEST_CASE("cancelling keeps what was answered") {
  std::atomic<bool> cancel = false;
  int answers = 0;
  TableMeasurer measurer([&](const MeasureInput& input) {
    if (++answers == 11) cancel = true;
    return hashed_time(input);
  });
  Database db = memory_db();
  TuneOptions options = small_options(1000);
  options.cancel = &cancel;
  const Outcome out = run({make_test_task("gemm")}, measurer, db, options);
  CHECK(out.report.cancelled);
  CHECK(out.report.tasks[0].stop == StopReason::kCancelled);
  const auto stored = static_cast<int>(records_of(db).size());
  CHECK(stored >= 8);
  CHECK(stored <= 11);
}

TEST_CASE("a measurer that loses the device ends the call") {
  TableMeasurer measurer([](const MeasureInput&) {
    Measurement m;
    m.status = MeasureStatus::kDeviceLost;
    return m;
  });
  Database db = memory_db();
  const Outcome out = run({make_test_task("gemm")}, measurer, db, small_options(1000));
  CHECK(out.report.tasks[0].stop == StopReason::kDeviceLost);
  // Nothing was learned of the candidates.
  CHECK(records_of(db).empty());
}

TEST_CASE("a device that is lost while a winner is verified says nothing of it") {
  TableMeasurer measurer([](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    if (input.kind == MeasureKind::kVerify) m.status = MeasureStatus::kDeviceLost;
    return m;
  });
  Database db = memory_db();
  run({make_test_task("gemm")}, measurer, db, small_options(8));
  for (const Record& record : records_of(db)) CHECK(record.measurement.ok());
  CHECK_FALSE(db.best(1).value().has_value());
}

TEST_CASE("who is found wrong later was never right") {
  Database db = memory_db();
  TableMeasurer right(hashed_time);
  const Outcome first = run({make_test_task("gemm")}, right, db, small_options(24));
  const std::string winner = first.report.tasks[0].best.fingerprint;
  TableMeasurer wrong([&](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    const bool is_winner = ir::fingerprint(input.program).to_string() == winner;
    if (input.kind == MeasureKind::kVerify && is_winner) m.status = MeasureStatus::kWrongResult;
    return m;
  });
  TuneOptions again = small_options(24);
  again.fresh = true;
  const Outcome second = run({make_test_task("gemm")}, wrong, db, again);
  CHECK(second.report.tasks[0].best.fingerprint != winner);
  for (const Record& record : records_of(db)) {
    if (record.fingerprint == winner) CHECK_FALSE(record.measurement.ok());
  }
  CHECK(db.best(1).value()->fingerprint != winner);
}

/// Takes requests and never answers.
class SilentMeasurer : public Measurer {
 public:
  void submit(MeasureInput) override {}
  std::optional<MeasureOutcome> next(Deadline) override { return std::nullopt; }
};

TEST_CASE("a measurer that forgets its requests does not hang the tuner") {
  SilentMeasurer measurer;
  Database db = memory_db();
  const Outcome out = run({make_test_task("gemm")}, measurer, db, small_options(100));
  CHECK(out.report.tasks[0].stop == StopReason::kDeviceLost);
  CHECK(out.report.tasks[0].best_ns == 0);
}

TEST_CASE("a small space ends when it is exhausted") {
  TableMeasurer measurer(hashed_time);
  Database db = memory_db();
  const Outcome out = run({make_test_task("axpy")}, measurer, db, small_options(500));
  CHECK(out.report.tasks[0].stop == StopReason::kExhausted);
  CHECK(out.report.tasks[0].trials >= 1);
  CHECK(out.report.tasks[0].trials < 500);
}

TEST_CASE("early stopping ends a task that gains nothing") {
  TableMeasurer measurer([](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    m.samples_ns = {500};
    summarize_samples(m);
    return m;
  });
  Database db = memory_db();
  TuneOptions options = small_options(400);
  options.early_stop = 24;
  const Outcome out = run({make_test_task("gemm")}, measurer, db, options);
  CHECK(out.report.tasks[0].stop == StopReason::kEarly);
  CHECK(out.report.tasks[0].trials < 100);
}

TEST_CASE("finals decide by new measurements, not by the luckiest old one") {
  std::set<std::string> timed;
  TableMeasurer measurer([&](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    const std::string print = ir::fingerprint(input.program).to_string();
    const bool again = input.kind == MeasureKind::kTime && !timed.insert(print).second;
    // First measurements are random; when measured again everything takes 3 us.
    if (again) m.samples_ns = {3000};
    summarize_samples(m);
    return m;
  });
  Database db = memory_db();
  const Outcome out = run({make_test_task("gemm")}, measurer, db, small_options(24));
  CHECK(out.report.tasks[0].best_ns == 3000);
  // Slower than before in every turn: the machine may be busy, so there are as many as may be.
  CHECK(measurer.num_timed == 24 + 4 * static_cast<int>(kMaxFinalTurns));
}

TEST_CASE("turns of the finals in which the machine was busy decide nothing") {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    // Every other set of busy turns, at most five of eight.
    Rng rng(seed, 3);
    std::set<int> busy;
    while (busy.size() < seed % 6) busy.insert(static_cast<int>(rng.below(kMaxFinalTurns)));
    std::map<std::string, int> times;
    double fastest = 1e30;
    TableMeasurer measurer([&](const MeasureInput& input) {
      Measurement m = hashed_time(input);
      fastest = std::min(fastest, m.median_ns);
      if (input.kind != MeasureKind::kTime) return m;
      const int turn = times[ir::fingerprint(input.program).to_string()]++ - 1;
      if (busy.count(turn) > 0) m.samples_ns = {m.median_ns * (1.5 + rng.uniform())};
      summarize_samples(m);
      return m;
    });
    Database db = memory_db();
    const Outcome out = run({make_test_task("gemm")}, measurer, db, small_options(16));
    CHECK(out.report.tasks[0].best_ns == fastest);
    CHECK(measurer.num_timed <= 16 + 4 * static_cast<int>(kFinalTurns + busy.size()));
  }
}

TEST_CASE("a turn is quiet unless most of its candidates were slow") {
  const std::vector<double> before = {100, 100, 100};
  const std::vector<FinalTurn> turns = {{101, 99, 250}, {240, 130, 101}, {0, 0, 0}, {102, 0, 98}};
  CHECK(quiet_turns(turns, before) == std::vector<std::size_t>{0, 2, 3});
  CHECK(is_decided(turns, before));
  CHECK_FALSE(is_decided(std::span(turns).first(3), before));
  // Never quiet: the least disturbed ones.
  std::vector<FinalTurn> loud;
  for (std::size_t i = 0; i < kMaxFinalTurns; ++i) {
    loud.push_back(FinalTurn(3, 200.0 + static_cast<double>((i * 5) % 8)));
    CHECK(is_decided(loud, before) == (i + 1 == kMaxFinalTurns));
  }
  CHECK(quiet_turns(loud, before) == std::vector<std::size_t>{0, 2, 5});
}

TEST_CASE("progress shows every task, all failures and where time went") {
  TableMeasurer measurer(hashed_time);
  Database db = memory_db();
  TuneOptions options = small_options(16);
  int64_t last_done = 0;
  int num_calls = 0;
  options.on_progress = [&](const TuneProgress& p) {
    ++num_calls;
    CHECK(p.tasks.size() == 2);
    CHECK(p.trials_total == 32);
    CHECK(p.trials_done >= last_done);
    last_done = p.trials_done;
  };
  run({make_test_task("gemm"), make_test_task("row_sum")}, measurer, db, options);
  CHECK(num_calls >= 20);
  CHECK(last_done >= 17);
}

TEST_CASE("evolution finds faster programs than random search when the model knows something") {
  // Time is the roofline's estimate with a fixed distortion per program.
  auto formula = [](const MeasureInput& input) {
    const double ns = costmodel::estimate_latency(input.program, input.task->target).total_ns;
    Measurement m = hashed_time(input);
    m.samples_ns = {ns * (0.8 + m.median_ns / 5000)};
    summarize_samples(m);
    return m;
  };
  double total[2] = {0, 0};
  for (const uint64_t seed : {1, 2, 3}) {
    for (const StrategyKind kind : {StrategyKind::kRandom, StrategyKind::kEvolution}) {
      TableMeasurer measurer(formula);
      Database db = memory_db();
      TuneOptions options = small_options(32);
      options.strategy = kind;
      options.seed = seed;
      options.finals = 0;
      const Outcome out = run({make_test_task("conv2d_relu")}, measurer, db, options);
      total[kind == StrategyKind::kEvolution ? 1 : 0] += out.report.tasks[0].best_ns;
    }
  }
  CHECK(total[1] <= total[0]);
}

}  // namespace
}  // namespace prunerc
