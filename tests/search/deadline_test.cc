// `time_s` is a deadline for a whole call: verification and finals included.
#include "search/tune/inbox.h"
#include "search/tune/time_budget.h"
#include "search/tune/tuner.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void sleep_s(double seconds) {
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
}

/// Takes its time, one request after the other, as a device does.
class SlowMeasurer : public Measurer {
 public:
  SlowMeasurer(double time_s, double verify_s) : time_s_(time_s), verify_s_(verify_s) {}

  void submit(MeasureInput input) override {
    num_verified += input.kind == MeasureKind::kVerify ? 1 : 0;
    pending_.push_back(std::move(input));
  }
  std::optional<MeasureOutcome> next(Deadline deadline) override {
    if (pending_.empty()) return std::nullopt;
    if (!begun_) begun_ = Clock::now();
    const MeasureInput& input = pending_.front();
    const double whole_s = input.kind == MeasureKind::kTime ? time_s_ : verify_s_;
    const double left_s = whole_s - seconds_since(*begun_);
    const double may_s = std::chrono::duration<double>(deadline - Clock::now()).count();
    sleep_s(std::max(0.0, std::min(left_s, may_s)));
    if (left_s > may_s) return std::nullopt;
    MeasureOutcome outcome = {input.id, hashed_time(input)};
    outcome.measurement.measure_s = whole_s;
    begun_.reset();
    pending_.pop_front();
    return outcome;
  }
  double busy_seconds() const override { return seconds_since(start_); }
  void withdraw() override {
    ++num_withdrawn;
    // What was begun goes on.
    while (pending_.size() > (begun_ ? 1U : 0U)) pending_.pop_back();
  }

  int num_verified = 0;
  int num_withdrawn = 0;

 private:
  double time_s_, verify_s_;
  std::deque<MeasureInput> pending_;
  std::optional<Clock::time_point> begun_;
  Clock::time_point start_ = Clock::now();
};

struct Outcome {
  TuneReport report;
  double seconds = 0;
  std::set<std::string> phases;
};

Outcome run(std::vector<Task> tasks, Measurer& measurer, TuneOptions options) {
  Result<Database> db = Database::open(":memory:");
  REQUIRE_OK(db);
  Outcome out;
  options.on_phase = [&](std::string_view phase) { out.phases.emplace(phase); };
  const auto start = Clock::now();
  Result<TuneReport> report = tune(tasks, measurer, *db, options);
  out.seconds = seconds_since(start);
  REQUIRE_OK(report);
  out.report = std::move(report).value();
  return out;
}

TuneOptions timed(double time_s) {
  TuneOptions options;
  options.trials = 0;
  options.time_s = time_s;
  options.batch = 8;
  options.seed = 11;
  options.num_threads = 1;
  options.strategy = StrategyKind::kRandom;
  options.check = {};
  return options;
}

/// For a machine that has other work, too.
constexpr double kSlack = 0.5;

TEST_CASE("a slow step raises what is expected at once, fast ones lower it by halves") {
  StepCost cost(5);
  CHECK(cost.seconds() == 5);
  cost.add(1);  // a guess is no measurement
  CHECK(cost.seconds() == 1);
  cost.add(3);
  CHECK(cost.seconds() == 3);
  cost.add(1);
  CHECK(cost.seconds() == 2);
}

TEST_CASE("finals shrink with the time that is left, to none") {
  CHECK(affordable_finalists(4, 100, 0.5) == 4);
  CHECK(affordable_finalists(4, 4.6, 0.5) == 3);
  CHECK(affordable_finalists(4, 3.1, 0.5) == 2);
  CHECK(affordable_finalists(4, 1.6, 0.5) == 0);
  CHECK(affordable_finalists(4, -1, 0.5) == 0);
  const TimeBudget budget(8, [] { return 1.0; });
  CHECK(budget.left_s() == 7);
  // Whole finals, or their share of the limit.
  CHECK(end_cost(budget, 2, 0.1, 1).sum_s() == Approx(2 + 0.3));
  CHECK(end_cost(budget, 2, 100, 1).sum_s() == Approx(2 + 2));
  CHECK(end_cost(budget, 2, 100, 4).sum_s() == Approx(2 + 0.5));
  CHECK(TimeBudget(0, [] { return 1e9; }).left_s() > 1e300);
}

TEST_CASE("a guess keeps back a share of the limit at most, what was seen all of it") {
  const TimeBudget budget(8, [] { return 0.0; });
  StepCost cost(1);
  CHECK(held_back_s(budget, cost) == 1);
  cost = StepCost(10);
  CHECK(held_back_s(budget, cost) == Approx(8 * 0.25));
  CHECK(held_back_s(TimeBudget(0, [] { return 0.0; }), cost) == 10);
  cost.add(6);
  CHECK(held_back_s(budget, cost) == 6);
}

TEST_CASE("an operator whose verification is guessed to take longer than there is is searched") {
  SlowMeasurer measurer(0.01, 0.1);
  Task task = make_test_task("gemm");
  task.flops = 1e12;
  REQUIRE(guess_verify_s(task) > 2);
  const Outcome out = run({task}, measurer, timed(2));
  CHECK(out.seconds < 2 + kSlack);
  CHECK(out.report.tasks[0].trials > 16);
  CHECK(out.report.tasks[0].verified);
}

TEST_CASE("a second operator is not begun if guesses of both do not fit") {
  SlowMeasurer measurer(0.01, 0.1);
  std::vector<Task> tasks = {make_test_task("gemm"), make_test_task("dense_relu")};
  for (Task& task : tasks) task.flops = 1e12;
  const Outcome out = run(tasks, measurer, timed(1));
  CHECK(out.report.tasks[0].verified);
  CHECK(out.report.tasks[1].trials == 0);
  CHECK(out.report.tasks[1].stop == StopReason::kTime);
}

TEST_CASE("a time that is over within a batch is why each operator ends, begun or not") {
  SlowMeasurer measurer(0.4, 0.1);
  const Outcome out =
      run({make_test_task("gemm"), make_test_task("dense_relu")}, measurer, timed(3));
  for (const TaskReport& task : out.report.tasks) CHECK(task.stop == StopReason::kTime);
  CHECK(out.report.tasks[0].trials > 0);
  CHECK(out.report.tasks[0].trials < 8);
}

TEST_CASE("trials that were all measured in time are why an operator ends") {
  SlowMeasurer measurer(0.01, 0.01);
  TuneOptions options = timed(20);
  options.trials = 2;
  options.finals = 0;
  const Outcome out = run({make_test_task("gemm")}, measurer, options);
  CHECK(out.report.tasks[0].stop == StopReason::kTrials);
}

TEST_CASE("a call ends in its time, its winner verified and its finals held") {
  SlowMeasurer measurer(0.02, 0.2);
  const Outcome out = run({make_test_task("gemm")}, measurer, timed(2));
  const TaskReport& task = out.report.tasks[0];
  CHECK(out.seconds < 2 + kSlack);
  CHECK(out.seconds > 1);
  CHECK(task.verified);
  CHECK(task.best_ns > 0);
  CHECK(task.trials >= 8);
  CHECK(task.stop == StopReason::kTime);
  CHECK(measurer.num_withdrawn == 1);
  CHECK(out.phases.count("finals of gemm") == 1);
  CHECK(out.phases.count("verifying gemm") == 1);
}

TEST_CASE("a winner is verified even if that alone takes longer than there was, and only one is") {
  SlowMeasurer measurer(0.01, 0.8);
  const Outcome out = run({make_test_task("gemm")}, measurer, timed(0.5));
  CHECK(out.report.tasks[0].verified);
  CHECK(measurer.num_verified == 1);
  CHECK(out.seconds < 0.5 + 0.8 + kSlack);
}

TEST_CASE("of many operators those are left out whose end would be too late") {
  SlowMeasurer measurer(0.01, 0.3);
  TuneOptions options = timed(1.5);
  options.first_batch = 2;
  std::vector<Task> tasks;
  for (const char* name : {"gemm", "conv2d_relu", "row_sum", "col_sum", "max_pool", "depthwise",
                           "dense_relu", "add_relu", "batch_matmul"}) {
    tasks.push_back(make_test_task(name));
  }
  const Outcome out = run(tasks, measurer, options);
  CHECK(out.seconds < 1.5 + kSlack);
  std::size_t num_begun = 0;
  for (const TaskReport& task : out.report.tasks) {
    num_begun += task.trials > 0 ? 1 : 0;
    // Whatever ran has a result that can be used.
    CHECK((task.trials == 0 || task.verified));
    CHECK((task.trials > 0 || task.best_ns == 0));
  }
  CHECK(num_begun >= 1);
  CHECK(num_begun < tasks.size());
}

TEST_CASE("proofs count: what is left unproved is not lost, and a winner is proved all the same") {
  SlowMeasurer measurer(0.001, 0.01);
  TuneOptions options = timed(1);
  options.check = [](const Task&, const schedule::Trace&, double log2_error, uint64_t) {
    // Cheap before building, dear before storing.
    sleep_s(log2_error < kDraftLog2Error ? 0.2 : 0.001);
    EqualityResult out;
    out.verdict.kind = ir::VerdictKind::kEqual;
    out.verdict.log2_error = log2_error;
    out.verdict.tests = 1;
    return out;
  };
  const Outcome out = run({make_test_task("gemm")}, measurer, options);
  CHECK(out.seconds < 1 + 4 * 0.2 + kSlack);
  CHECK(out.report.tasks[0].verified);
  CHECK(out.report.tasks[0].evidence.find("on a twin equal") != std::string::npos);
}

TEST_CASE("who cancels does not wait for proofs") {
  std::atomic<bool> cancel = false;
  int num_dear = 0;
  TableMeasurer measurer(hashed_time);
  TuneOptions options = timed(0);
  options.cancel = &cancel;
  options.check = [&](const Task&, const schedule::Trace&, double log2_error, uint64_t) {
    if (log2_error < kDraftLog2Error) {
      ++num_dear;
      cancel = true;
    }
    EqualityResult out;
    out.verdict.kind = ir::VerdictKind::kEqual;
    out.verdict.log2_error = log2_error;
    out.verdict.tests = 1;
    return out;
  };
  const Outcome out = run({make_test_task("gemm")}, measurer, options);
  CHECK(out.report.cancelled);
  CHECK(num_dear == 1);
  CHECK(measurer.num_verified == 0);
  CHECK(out.report.tasks[0].trials >= 8);
}

/// Another strategy, with a count of what it was told.
class Student final : public Strategy {
 public:
  Student(std::unique_ptr<Strategy> own, int* num_lessons)
      : own_(std::move(own)), num_lessons_(num_lessons) {}
  std::vector<Candidate> ask(std::size_t n) override { return own_->ask(n); }
  void tell(std::span<const Candidate> candidates,
            std::span<const Measurement> measurements) override {
    ++*num_lessons_;
    own_->tell(candidates, measurements);
  }
  int64_t num_drafted() const override { return own_->num_drafted(); }

 private:
  std::unique_ptr<Strategy> own_;
  int* num_lessons_;
};

TEST_CASE("who cancels does not wait for learning") {
  std::atomic<bool> cancel = false;
  int num_answers = 0, num_lessons = 0;
  TableMeasurer measurer([&](const MeasureInput& input) {
    if (++num_answers == 3) cancel = true;
    return hashed_time(input);
  });
  TuneOptions options = timed(0);
  options.cancel = &cancel;
  options.fresh = true;  // nothing is told of the store
  options.make_strategy = [&](const StrategyContext& context) -> Result<std::unique_ptr<Strategy>> {
    PRUNERC_TRY(std::unique_ptr<Strategy> own, make_strategy(StrategyKind::kRandom, context));
    return std::unique_ptr<Strategy>(std::make_unique<Student>(std::move(own), &num_lessons));
  };
  const Outcome out = run({make_test_task("gemm")}, measurer, options);
  CHECK(out.report.cancelled);
  CHECK(out.report.tasks[0].trials > 0);
  CHECK(num_lessons == 0);
}

TEST_CASE("draining waits for what was begun") {
  constexpr double kRunS = 0.2;
  SlowMeasurer measurer(kRunS, kRunS);
  const Task task = make_test_task("gemm");
  MeasureInput input;
  input.task = &task;
  input.program = task.base;
  for (input.id = 1; input.id <= 2; ++input.id) measurer.submit(input);
  const auto start = Clock::now();
  CHECK_FALSE(measurer.next(start).has_value());
  drain(measurer);
  CHECK(seconds_since(start) >= kRunS);
  CHECK(seconds_since(start) < 2 * kRunS + kSlack);
  CHECK(measurer.num_withdrawn == 1);
}

TEST_CASE("a call that goes on with stored records keeps its time") {
  Result<Database> db = Database::open(":memory:");
  REQUIRE_OK(db);
  const std::vector<Task> tasks = {make_test_task("gemm")};
  TuneOptions options = timed(1);
  for (int i = 0; i < 2; ++i) {
    SlowMeasurer measurer(0.01, 0.1);
    const auto start = Clock::now();
    const Result<TuneReport> report = tune(tasks, measurer, *db, options);
    REQUIRE_OK(report);
    CHECK(seconds_since(start) < 1 + kSlack);
    CHECK(report->tasks[0].verified);
    CHECK((i == 0) == (report->tasks[0].reused == 0));
  }
}

}  // namespace
}  // namespace prunerc
