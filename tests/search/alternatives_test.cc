// An operator beside programs that compute the same: who may be an alternative, who gets the trials, who wins.
#include "search/algebra/alternatives.h"

#include "ir/equal.h"
#include "tests/search/programs.h"
#include "tests/search/records.h"
#include "tests/support/check.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace prunerc {
namespace {

using namespace search;           // NOLINT: a test
using namespace search::algebra;  // NOLINT: a test
using namespace testing;          // NOLINT: a test

// X * (A * B), and the same with the first product first.
const char* const kSpec = R"(
program lora(X: f32[12, 16], A: f32[16, 4], B: f32[4, 40]) -> (Y: f32[12, 40]) {
  buffer W: f32[16, 40] global
  for i in 16 { for j in 40 { for k in 4 {
    block "W" [vi: S(16) = i, vj: S(40) = j, vk: R(4) = k] {
      init { W[vi, vj] = 0f32 } W[vi, vj] = W[vi, vj] + A[vi, vk] * B[vk, vj] } } } }
  for i2 in 12 { for j2 in 40 { for k2 in 16 {
    block "Y" [wi: S(12) = i2, wj: S(40) = j2, wk: R(16) = k2] {
      init { Y[wi, wj] = 0f32 } Y[wi, wj] = Y[wi, wj] + X[wi, wk] * W[wk, wj] } } } } })";

std::string other_order(
    const std::string& term = "T[wi, wk] * b[wk, wj]",
    const std::string& params = "x: f32[12, 16], a: f32[16, 4], b: f32[4, 40]") {
  return "program p(" + params + R"() -> (y: f32[12, 40]) {
  buffer T: f32[12, 4] global
  for i in 12 { for j in 4 { for k in 16 {
    block "T" [vi: S(12) = i, vj: S(4) = j, vk: R(16) = k] {
      init { T[vi, vj] = 0f32 } T[vi, vj] = T[vi, vj] + x[vi, vk] * a[vk, vj] } } } }
  for i2 in 12 { for j2 in 40 { for k2 in 4 {
    block "y" [wi: S(12) = i2, wj: S(40) = j2, wk: R(4) = k2] {
      init { y[wi, wj] = 0f32 } y[wi, wj] = y[wi, wj] + )" +
         term + " } } } } }";
}

Task spec_task() {
  ir::Target target = *ir::target_from_string("cpu:icelake-server");
  target.num_threads = 2;
  return make_task("lora", parse_or_die(kSpec), target);
}

Derived derived(const std::string& text, const std::string& recipe = "X*A first") {
  Derived out;
  out.program = parse_or_die(text);
  out.recipe = recipe;
  out.rules = 1;
  out.flops = 100;
  out.limit_ns = 10;
  out.verdict.kind = ir::VerdictKind::kEqual;
  out.verdict.log2_error = -40;
  out.numerics = NumericClass::kNormal;
  return out;
}

// --- who may be one

TEST_CASE("a derived program becomes an alternative once it is shown to be the operator to 2^-64") {
  const Judged judged = judge(spec_task(), derived(other_order()), 7);
  INFO(judged.refusal);
  REQUIRE(judged.alternative);
  const Task& task = judged.alternative->task;
  CHECK(task.name == "lora, X*A first");
  CHECK(task.is_derived());
  CHECK(ir::structural_equal(task.spec, spec_task().base));
  CHECK(task.base.buffer(task.base.params()[0]).name == "X");
  CHECK(task.spec_error > 1);
  const DerivedLink& link = judged.alternative->link;
  CHECK(link.log2_error <= kStoredLog2Error);
  CHECK(link.tests >= 1);
  CHECK(link.numerics == "normal");
  CHECK(link.recipe == "X*A first");
  CHECK_FALSE(link.imported);
}

TEST_CASE("a derived program that is not the operator, or was not shown to be, is refused") {
  const Task spec = spec_task();
  const auto refusal = [&](const Derived& one) {
    const Judged judged = judge(spec, one, 7);
    CHECK_FALSE(judged.alternative);
    return judged.refusal;
  };
  const std::string right = "T[wi, wk] * b[wk, wj]";
  for (const char* wrong :
       {"T[wi, wk] * b[3 - wk, wj]", "T[wi, wk] * b[wk, 39 - wj]", "T[11 - wi, wk] * b[wk, wj]",
        "T[wi, wk] * b[wk, wj] * 2f32", "T[wi, wk] * (b[wk, wj] + 0.5f32)"}) {
    INFO(wrong);
    CHECK(refusal(derived(other_order(wrong))).find("not equal") == 0);
  }
  const std::string parameters = "its parameters are not the operator's";
  CHECK(refusal(derived(other_order(
            right, "x: f32[12, 16], a: f32[16, 4], const b: f32[4, 40]"))) == parameters);
  CHECK(refusal(derived(other_order(right, "x: f32[12, 16], b: f32[4, 40], a: f32[16, 4]"))) ==
        parameters);
  CHECK(refusal(derived(kSpec)) == "it is the operator as written");
  CHECK(refusal(derived(other_order(), "")) == "it has no recipe");
  // What the deriver itself doubts.
  for (const ir::VerdictKind kind : {ir::VerdictKind::kNotEqual, ir::VerdictKind::kUnsupported}) {
    Derived doubtful = derived(other_order());
    doubtful.verdict.kind = kind;
    CHECK(refusal(doubtful).find("derived as ") == 0);
  }
}

// The sum of A's rows by the sums of their products with B's: half a billion steps for each element.
const char* const kSums = R"(
program sums(A: f32[2048, 64], B: f32[2048, 64]) -> (s: f32[64]) {
  buffer P: f32[2048, 2048] global
  for i in 2048 { for j in 2048 { for d in 64 {
    block "P" [vi: S(2048) = i, vj: S(2048) = j, vd: R(64) = d] {
      init { P[vi, vj] = 0f32 } P[vi, vj] = P[vi, vj] + A[vi, vd] * B[vj, vd] } } } }
  for d2 in 64 { for i2 in 2048 { for j2 in 2048 {
    block "s" [wd: S(64) = d2, wi: R(2048) = i2, wj: R(2048) = j2] {
      init { s[wd] = 0f32 } s[wd] = s[wd] + P[wi, wj] * A[wi, wd] } } } } })";

std::string sums_first(const std::string& term, int rows = 2048) {
  const std::string n = std::to_string(rows);
  return R"(
program p(A: f32[2048, 64], B: f32[2048, 64]) -> (s: f32[64]) {
  buffer b: f32[64] global
  buffer r: f32[2048] global
  for d in 64 { for j in )" +
         n + R"( {
    block "b" [vd: S(64) = d, vj: R()" +
         n + R"() = j] {
      init { b[vd] = 0f32 } b[vd] = b[vd] + B[vj, vd] } } }
  for i in 2048 { for e in 64 {
    block "r" [vi: S(2048) = i, ve: R(64) = e] {
      init { r[vi] = 0f32 } r[vi] = r[vi] + A[vi, ve] * b[ve] } } }
  for d2 in 64 { for i2 in 2048 {
    block "s" [wd: S(64) = d2, wi: R(2048) = i2] {
      init { s[wd] = 0f32 } s[wd] = s[wd] + )" +
         term + " } } } }";
}

TEST_CASE("forms of sums that are too large to be run are compared at small extents") {
  const Task spec = make_task("sums", parse_or_die(kSums), spec_task().target);
  const Judged right = judge(spec, derived(sums_first("r[wi] * A[wi, wd]")), 7);
  INFO(right.refusal);
  REQUIRE(right.alternative);
  CHECK(right.alternative->link.log2_error <= kStoredLog2Error);
  // A claim of somebody else is not believed for that.
  CHECK_FALSE(is_shown(check_link(spec, right.alternative->task, 3)));
  for (const char* wrong :
       {"r[wi] * A[wi, wd] * 2f32", "(r[wi] + 0.5f32) * A[wi, wd]", "r[wi] * A[2047 - wi, wd]"}) {
    INFO(wrong);
    CHECK_FALSE(judge(spec, derived(sums_first(wrong)), 7).alternative);
  }
  // A part of the rows is a part at no small extent.
  CHECK_FALSE(judge(spec, derived(sums_first("r[wi] * A[wi, wd]", 1024)), 7).alternative);
}

TEST_CASE("samples are not enough to believe a claim that is wrong in one element") {
  const auto twice = [](const std::string& value) {
    return parse_or_die(
        "program p(X: f32[2048, 2048]) -> (Y: f32[2048, 2048]) { for i in 2048 { for j in 2048 { "
        "block \"Y\" [vi: S(2048) = i, vj: S(2048) = j] { Y[vi, vj] = " +
        value + " } } } }");
  };
  const Task spec = make_task("twice", twice("2f32*X[vi, vj]"), spec_task().target);
  const auto check = [&](const std::string& value) {
    DerivedLink link;
    link.recipe = "a sum";
    link.numerics = "normal";
    return check_link(spec, task_of_link(spec, twice(value), link), 3);
  };
  const SampledVerdict right = check("X[vi, vj] + X[vi, vj]");
  INFO(to_string(right));
  CHECK(is_shown(right));
  CHECK_FALSE(right.is_whole);
  CHECK_FALSE(is_shown(check("select(vi == 1111 && vj == 777, 0f32, X[vi, vj] + X[vi, vj])")));
}

TEST_CASE("a stored link gives its task again, and none where its texts are another program") {
  const Task spec = spec_task();
  const Alternative made = *judge(spec, derived(other_order()), 7).alternative;
  Database db = open_or_die(":memory:");
  const int64_t spec_id = db.put_task(spec).value();
  REQUIRE_OK(db.put_derived(spec_id, db.put_task(made.task).value(), made.link));
  DerivedRow row = db.derived_of(spec_id).value()[0];
  const std::optional<Task> stored = stored_task(spec, row);
  REQUIRE(stored);
  CHECK(stored->key == made.task.key);
  CHECK(stored->name == made.task.name);
  CHECK(stored->spec_error == made.task.spec_error);
  CHECK(stored->base.buffer(stored->base.params()[2]).name == "B");
  CHECK(is_shown(check_link(spec, *stored, 3)));
  CHECK_FALSE(stored_task(make_test_task("gemm"), row));
  row.task.key.program += " ";
  CHECK_FALSE(stored_task(spec, row));
  row.task.key.program = "program p( {";
  CHECK_FALSE(stored_task(spec, row));
}

// --- who wins

Measurement timed(double median_ns, double spread = 0) {
  Measurement m;
  m.status = MeasureStatus::kOk;
  m.median_ns = median_ns;
  m.spread = spread;
  return m;
}

TEST_CASE("a derived program wins by more than 2 % and what times scatter by") {
  CHECK_FALSE(is_faster(timed(99), timed(100)));
  CHECK_FALSE(is_faster(timed(98.5), timed(100)));
  CHECK_FALSE(is_faster(timed(101), timed(100)));
  CHECK(is_faster(timed(97), timed(100)));
  CHECK_FALSE(is_faster(timed(97, 0.05), timed(100)));
  CHECK_FALSE(is_faster(timed(97), timed(100, 0.05)));
  CHECK(is_faster(timed(90, 0.05), timed(100, 0.05)));
  // However noisy, a program that takes a tenth is faster.
  CHECK(is_faster(timed(10, 1.5), timed(100, 1.5)));
  CHECK(is_faster(timed(10), Measurement{}));
  CHECK_FALSE(is_faster(Measurement{}, timed(100)));
  CHECK_FALSE(is_faster(Measurement{}, Measurement{}));
}

// Programs that are the operator, each in words of its own.
std::vector<Alternative> some_alternatives(const Task& spec, std::size_t count) {
  const std::vector<std::string> terms = {
      "T[wi, wk] * b[wk, wj]",        "b[wk, wj] * T[wi, wk]",
      "1f32 * T[wi, wk] * b[wk, wj]", "T[wi, wk] * b[wk, wj] * 1f32",
      "T[wi, wk] * b[wk, wj] + 0f32", "T[wi, wk] * (b[wk, wj] * 1f32)",
  };
  std::vector<Alternative> out;
  for (std::size_t i = 0; i < count; ++i) {
    const Judged judged =
        judge(spec, derived(other_order(terms[i]), "form " + std::to_string(i + 1)), 7);
    INFO(judged.refusal);
    REQUIRE(judged.alternative);
    for (const Alternative& other : out) REQUIRE(other.task.key != judged.alternative->task.key);
    out.push_back(*judged.alternative);
  }
  return out;
}

/// Every candidate of a program takes the same; 0 is the operator as written.
std::string recipe_of(const MeasureInput& input) { return input.task->recipe; }

TableMeasurer::Formula by_recipe(std::map<std::string, double> times) {
  return [times = std::move(times)](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    m.samples_ns = {times.at(recipe_of(input))};
    summarize_samples(m);
    return m;
  };
}

TuneOptions small_options(int64_t trials) {
  TuneOptions options;
  options.trials = trials;
  options.seed = 11;
  options.num_threads = 1;
  options.strategy = StrategyKind::kRandom;
  options.check = {};
  return options;
}

AlternativesReport run(std::size_t count, Measurer& measurer, Database& db,
                       const TuneOptions& options) {
  const Task spec = spec_task();
  Result<AlternativesReport> report =
      tune_alternatives(spec, some_alternatives(spec, count), measurer, db, options);
  REQUIRE_OK(report);
  return std::move(report).value();
}

TEST_CASE("the operator stays unless an alternative is clearly faster in the finals") {
  const struct {
    double derived_ns;
    std::size_t winner;
  } cases[] = {{1010, 0}, {1000, 0}, {990, 0}, {985, 0}, {970, 1}, {100, 1}};
  for (const auto& one : cases) {
    INFO(one.derived_ns);
    TableMeasurer measurer(by_recipe({{"", 1000}, {"form 1", one.derived_ns}}));
    Database db = open_or_die(":memory:");
    const AlternativesReport report = run(1, measurer, db, small_options(24));
    CHECK(report.winner == one.winner);
    CHECK(report.tune.tasks[0].best_ns == 1000);
    CHECK(report.tune.tasks[1].best_ns == one.derived_ns);
    CHECK(report.tune.tasks[report.winner].verified);
  }
}

TEST_CASE("a time that only the search saw wins nothing: finals are in turns") {
  // The alternative is lucky while it is searched, and slower whenever both run in turns.
  int num_timed = 0;
  const auto lucky = [&](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    if (input.kind == MeasureKind::kTime) ++num_timed;
    const bool searching = num_timed <= 24;
    m.samples_ns = {recipe_of(input).empty() ? 1000.0 : searching ? 900.0 : 1010.0};
    summarize_samples(m);
    return m;
  };
  TableMeasurer measurer(lucky);
  Database db = open_or_die(":memory:");
  const AlternativesReport report = run(1, measurer, db, small_options(24));
  CHECK(report.winner == 0);
  CHECK(num_timed > 24);
  CHECK(report.tune.tasks[1].best_ns == 1010);
}

TEST_CASE("in the finals the operator's best and the fastest alternative's meet in each turn") {
  std::vector<std::string> asked;
  const std::map<std::string, double> times = {
      {"", 1000}, {"form 1", 950}, {"form 2", 800}, {"form 3", 900}};
  const auto formula = [&](const MeasureInput& input) {
    if (input.kind == MeasureKind::kTime) asked.push_back(recipe_of(input));
    return by_recipe(times)(input);
  };
  TableMeasurer measurer(formula);
  Database db = open_or_die(":memory:");
  TuneOptions options = small_options(40);
  options.finals = 2;
  const AlternativesReport report = run(3, measurer, db, options);
  CHECK(report.winner == 2);
  int64_t trials = 0;
  for (const TaskReport& row : report.tune.tasks) trials += row.trials;
  REQUIRE(trials == 40);
  const std::vector<std::string> finals(asked.begin() + 40, asked.end());
  const std::vector<std::string> turn = {"", "", "form 2", "form 2"};
  REQUIRE(finals.size() == 12);
  for (std::size_t i = 0; i < finals.size(); ++i) CHECK(finals[i] == turn[i % turn.size()]);
}

// --- who gets the trials

TEST_CASE("with many trials each gets 8 and the best three 24 more; few are shared out alike") {
  CHECK(plan_halving(7, 1000) == HalvingPlan{8, 24});
  CHECK(plan_halving(2, 1000) == HalvingPlan{8, 24});
  CHECK(plan_halving(7, 0) == HalvingPlan{8, 24});
  for (const int64_t total : {1, 5, 16, 64, 100, 190, 200}) {
    for (const std::size_t num_tasks : {2, 3, 4, 7}) {
      INFO(total << " trials of " << num_tasks);
      const HalvingPlan plan = plan_halving(num_tasks, total);
      CHECK(plan.first >= 1);
      CHECK(plan.first <= 8);
      CHECK(plan.second >= 0);
      const auto num = static_cast<int64_t>(num_tasks);
      const int64_t explored = num * plan.first + std::min<int64_t>(num, 3) * plan.second;
      // What is left is for the fastest, where there is more than a trial for each.
      if (total > 3 * num) CHECK(3 * explored <= 2 * total + 3 * num);
    }
  }
}

TEST_CASE("all together take the trials that the operator would have alone") {
  for (const int64_t trials : {10, 33, 80}) {
    for (const std::size_t count : {1, 2, 6}) {
      INFO(trials << " trials of " << count << " alternatives");
      TableMeasurer measurer(hashed_time);
      Database db = open_or_die(":memory:");
      TuneOptions options = small_options(trials);
      options.finals = 0;
      const AlternativesReport report = run(count, measurer, db, options);
      int64_t total = 0;
      for (const TaskReport& row : report.tune.tasks) total += row.trials;
      CHECK(total == trials);
      CHECK(measurer.num_timed == trials);
    }
  }
}

TEST_CASE("the slow ones are given up first, the operator never before the end") {
  const std::map<std::string, double> times = {{"", 9000},       {"form 1", 3000},
                                               {"form 2", 1000}, {"form 3", 8000},
                                               {"form 4", 2000}, {"form 5", 7000}};
  TableMeasurer measurer(by_recipe(times));
  Database db = open_or_die(":memory:");
  const AlternativesReport report = run(5, measurer, db, small_options(200));
  std::vector<int64_t> trials;
  for (const TaskReport& row : report.tune.tasks) trials.push_back(row.trials);
  // The best three are forms 2 and 4 and, in place of form 1, the operator.
  CHECK(trials == std::vector<int64_t>{32, 8, 200 - 32 - 32 - 3 * 8, 8, 32, 8});
  CHECK(report.winner == 2);
}

TEST_CASE("an alternative of which nothing is right is given up") {
  const auto formula = [](const MeasureInput& input) {
    Measurement m = hashed_time(input);
    if (recipe_of(input) == "form 1") {
      m.samples_ns = {1};
      summarize_samples(m);
      if (input.kind == MeasureKind::kVerify) m.status = MeasureStatus::kWrongResult;
    }
    if (recipe_of(input) == "form 2") {
      m = {};
      m.status = MeasureStatus::kCrash;
    }
    return m;
  };
  TableMeasurer measurer(formula);
  Database db = open_or_die(":memory:");
  const AlternativesReport report = run(2, measurer, db, small_options(60));
  CHECK(report.winner == 0);
  CHECK(report.tune.tasks[0].best_ns > 0);
  CHECK(report.tune.tasks[0].verified);
  CHECK(report.tune.tasks[1].best_ns == 0);
  CHECK(report.tune.tasks[2].best_ns == 0);
}

TEST_CASE("the same seed and times give the same search for any threads and order of answers") {
  std::string first;
  for (const int num_threads : {1, 2, 1}) {
    TableMeasurer measurer(hashed_time, num_threads == 2);
    Database db = open_or_die(":memory:");
    TuneOptions options = small_options(50);
    options.num_threads = num_threads;
    std::string log;
    options.log = [&](std::string_view line) { log += std::string(line) + "\n"; };
    run(3, measurer, db, options);
    if (first.empty()) first = log;
    CHECK(log == first);
    CHECK(std::count(log.begin(), log.end(), '\n') >= 100);
  }
}

TEST_CASE("links are stored before anything is measured, and a second call goes on") {
  TableMeasurer measurer(hashed_time);
  Database db = open_or_die(":memory:");
  const std::atomic<bool> stopped = true;
  TuneOptions options = small_options(30);
  options.cancel = &stopped;
  const AlternativesReport none = run(2, measurer, db, options);
  CHECK(none.tune.cancelled);
  CHECK(none.winner == 0);
  CHECK(db.derived_of(1)->size() == 2);
  CHECK(db.stats()->num_records == 0);
  options.cancel = nullptr;
  options.finals = 0;
  run(2, measurer, db, options);
  CHECK(db.derived_of(1)->size() == 2);
  CHECK(db.stats()->num_records == 30);
  const AlternativesReport again = run(2, measurer, db, options);
  int64_t reused = 0;
  for (const TaskReport& row : again.tune.tasks) reused += row.reused;
  CHECK(reused >= 30);
  CHECK(measurer.num_timed == 60);
  CHECK(db.stats()->num_records == 60);
}

TEST_CASE("a search that is stopped in between keeps what was answered") {
  std::atomic<bool> stop = false;
  int num_answers = 0;
  const auto formula = [&](const MeasureInput& input) {
    if (++num_answers == 20) stop = true;
    return hashed_time(input);
  };
  TableMeasurer measurer(formula);
  Database db = open_or_die(":memory:");
  TuneOptions options = small_options(100);
  options.cancel = &stop;
  const AlternativesReport report = run(2, measurer, db, options);
  CHECK(report.tune.cancelled);
  CHECK(db.stats()->num_records > 0);
  CHECK(db.stats()->num_records <= 20);
  // Nothing of it comes into the next call on the same measurer.
  CHECK_FALSE(measurer.next(std::chrono::steady_clock::now()));
}

TEST_CASE("a time limit ends it with a verified best") {
  const auto formula = [](const MeasureInput& input) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Measurement m = hashed_time(input);
    m.measure_s = 0.005;
    return m;
  };
  TableMeasurer measurer(formula);
  Database db = open_or_die(":memory:");
  TuneOptions options = small_options(0);
  options.time_s = 1;
  const auto start = std::chrono::steady_clock::now();
  const AlternativesReport report = run(2, measurer, db, options);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  // Generous: a busy machine.
  CHECK(took.count() < 4);
  CHECK(report.tune.tasks[0].best_ns > 0);
  CHECK(report.tune.tasks[report.winner].verified);
}

TEST_CASE("an operator without alternatives is tuned as ever") {
  TableMeasurer measurer(hashed_time);
  Database db = open_or_die(":memory:");
  const AlternativesReport report = run(0, measurer, db, small_options(20));
  CHECK(report.winner == 0);
  REQUIRE(report.tune.tasks.size() == 1);
  CHECK(report.tune.tasks[0].trials == 20);
}

TEST_CASE("one row stands for all programs of an operator, with a curve that only falls") {
  TableMeasurer measurer(hashed_time);
  Database db = open_or_die(":memory:");
  const AlternativesReport report = run(3, measurer, db, small_options(60));
  const TaskReport row = joined(spec_task(), report.tune.tasks, report.winner);
  CHECK(row.name == "lora");
  CHECK(row.trials == 60);
  CHECK(row.best_ns == report.tune.tasks[report.winner].best_ns);
  REQUIRE_FALSE(row.curve.empty());
  for (std::size_t i = 1; i < row.curve.size(); ++i) {
    CHECK(row.curve[i].best_ns < row.curve[i - 1].best_ns);
    CHECK(row.curve[i].trial >= row.curve[i - 1].trial);
  }
  int64_t counted = 0;
  for (const int64_t count : row.counts) counted += count;
  CHECK(counted == 60);
  CHECK(fastest({}) == 0);
  CHECK(fastest(std::vector<TaskReport>(3)) == 0);
}

}  // namespace
}  // namespace prunerc
