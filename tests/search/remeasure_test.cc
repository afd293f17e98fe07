#include "search/tune/remeasure.h"

#include "ir/equal.h"
#include "ir/support/rng.h"
#include "search/tune/recorder.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

Pool recorded(const Task& task, int64_t candidates, const TableMeasurer::Formula& formula) {
  Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  Pool pool = make_pool(task, *space);
  pool.seed = 5;
  RecordOptions options;
  options.candidates = candidates;
  options.num_threads = 1;
  options.finals.turns = 0;
  options.check = {};
  TableMeasurer measurer(formula);
  REQUIRE_OK(record_pool(task, measurer, options, &pool));
  return pool;
}

double table_ns(const MeasureInput& input) { return hashed_time(input).samples_ns[0]; }

Measurement timed(double ns) {
  Measurement m;
  m.status = MeasureStatus::kOk;
  m.samples_ns.assign(7, ns);
  summarize_samples(m);
  return m;
}

// Off by up to a part of itself, differently whenever it is asked.
TableMeasurer::Formula noisy(double part, uint64_t seed) {
  return [part, rng = Rng(seed)](const MeasureInput& input) mutable {
    return timed(table_ns(input) * (1 + part * (2 * rng.uniform() - 1)));
  };
}

// Answers come in another order than they were asked for.
Result<RemeasureEnd> run(const Task& task, const TableMeasurer::Formula& formula,
                         const RemeasureOptions& options, Pool* pool) {
  TableMeasurer measurer(formula, /*reversed=*/true);
  Inbox inbox(measurer, nullptr);
  return remeasure(task, inbox, options, pool);
}

Measurement failed(MeasureStatus status) {
  Measurement m;
  m.status = status;
  m.detail = "made to fail";
  return m;
}

Measurement exact(const MeasureInput& input) { return timed(table_ns(input)); }

void check_complete(const Result<RemeasureEnd>& end) {
  REQUIRE_OK(end);
  CHECK(*end == RemeasureEnd::kComplete);
}

TEST_CASE("turns are brought to one level: a clock that moves between them changes no order") {
  for (int i = 0; i < num_cases(); ++i) {
    Rng rng(first_seed() + static_cast<uint64_t>(i));
    const std::size_t n = 3 + rng.below(40), num_turns = 1 + rng.below(9);
    std::vector<double> base, levels;
    for (std::size_t k = 0; k < n; ++k) base.push_back(1000 * std::exp2(2 * rng.uniform()));
    std::vector<std::vector<double>> turns(num_turns, std::vector<double>(n, 0));
    for (std::vector<double>& turn : turns) {
      levels.push_back(std::exp2(rng.uniform()));
      for (std::size_t k = 0; k < n; ++k) turn[k] = levels.back() * base[k];
    }
    const std::vector<TurnTime> joined = join_turns(turns);
    REQUIRE(joined.size() == n);
    for (std::size_t k = 0; k < n; ++k) {
      CHECK(joined[k].median_ns / joined[0].median_ns == Approx(base[k] / base[0]));
      CHECK(joined[k].spread < 1e-9);
      CHECK(joined[k].median_ns >= 0.999 * base[k]);
      CHECK(joined[k].median_ns <= 2.001 * base[k]);
    }
  }
}

TEST_CASE("one wild turn of a candidate decides nothing, and a turn without it neither") {
  std::vector<std::vector<double>> turns(5, {100, 200, 300, 0});
  turns[1][0] = 1;
  turns[2][1] = 0;
  turns[3][2] = 9000;
  const std::vector<TurnTime> joined = join_turns(turns);
  CHECK(joined[0].median_ns == Approx(100));
  CHECK(joined[1].median_ns == Approx(200));
  CHECK(joined[2].median_ns == Approx(300));
  CHECK(joined[3].median_ns == 0);
  CHECK(join_turns({}).empty());
}

TEST_CASE("contenders are the best rows and what is nearly as fast") {
  Pool pool;
  for (const double ns : {130.0, 100.0, 0.0, 110.0, 114.0, 200.0}) {
    PoolRow row;
    row.status = ns > 0 ? MeasureStatus::kOk : MeasureStatus::kTimeout;
    row.median_ns = ns;
    pool.rows.push_back(row);
  }
  using Rows = std::vector<std::size_t>;
  CHECK(contenders(pool, {.best = 2, .within = 0}) == Rows{1, 3});
  CHECK(contenders(pool, {.best = 0, .within = 0.12}) == Rows{1, 3});
  CHECK(contenders(pool, {.best = 1, .within = 0.15}) == Rows{1, 3, 4});
  CHECK(contenders(pool, {.best = 4, .within = 0.05}) == Rows{1, 3, 4, 0});
  CHECK(contenders(pool, {.best = 50, .within = 9}) == Rows{1, 3, 4, 0, 5});
  CHECK(contenders(Pool{}, {}).empty());
}

// What the true time of the row that a pool calls the best is over the best true time.
double regret_of(const Pool& judged, const Pool& truth) {
  const auto best = static_cast<std::size_t>(judged.best());
  return truth.rows[best].median_ns / truth.rows[static_cast<std::size_t>(truth.best())].median_ns -
         1;
}

TEST_CASE("many turns find who is best where one measurement is luck") {
  const Task task = make_test_task("gemm");
  const Pool truth = recorded(task, 120, exact);
  double regret_once = 0, regret_then = 0;
  for (uint64_t seed = 1; seed <= 5; ++seed) {
    const Pool once = recorded(task, 120, noisy(0.2, seed));
    REQUIRE(once.rows.size() == truth.rows.size());
    Pool pool = once;
    const RemeasureOptions options{.best = 40, .within = 0.15, .turns = 15};
    check_complete(run(task, noisy(0.2, 100 + seed), options, &pool));
    regret_once += regret_of(once, truth);
    regret_then += regret_of(pool, truth);
    const std::vector<std::size_t> rows = contenders(once, options);
    CHECK(rows.size() >= 40);
    std::vector<double> ratios;
    for (std::size_t i = 0; i < pool.rows.size(); ++i) {
      REQUIRE(once.rows[i].decisions == truth.rows[i].decisions);
      const bool is_contender = std::find(rows.begin(), rows.end(), i) != rows.end();
      CHECK(pool.rows[i].is_final == is_contender);
      if (!is_contender) CHECK(pool.rows[i] == once.rows[i]);
      if (!is_contender) continue;
      CHECK(pool.rows[i].num_samples == 15 * 7);
      CHECK(pool.rows[i].verified);
      ratios.push_back(pool.rows[i].median_ns / once.rows[i].median_ns);
    }
    // The level of the rows that were not measured again.
    CHECK(median_of(ratios) == Approx(1).epsilon(0.002));
  }
  INFO(regret_once << " and then " << regret_then);
  CHECK(regret_once > 0.1);
  CHECK(regret_then < 0.4 * regret_once);
}

TEST_CASE("another clock on another day leaves the level as it was, whatever the number of turns") {
  const Task task = make_test_task("gemm");
  const auto slow = [](const MeasureInput& i) { return timed(3 * table_ns(i)); };
  const Pool before = recorded(task, 40, exact);
  for (const int turns : {1, 2, 3, 7}) {
    Pool pool = before;
    check_complete(run(task, slow, {.turns = turns}, &pool));
    for (std::size_t i = 0; i < pool.rows.size(); ++i) {
      CHECK(pool.rows[i].median_ns == Approx(before.rows[i].median_ns).epsilon(0.002));
      CHECK_FALSE(pool.rows[i].disturbed);
    }
  }
}

TEST_CASE("turns in which other work had the CPU do not count while there are others") {
  const Task task = make_test_task("gemm");
  const Pool before = recorded(task, 30, exact);
  const auto measured = [&](int quiet_of_seven) {
    int asked = 0;
    Pool pool = before;
    const auto disturbed = [&](const MeasureInput& input) {
      // In busy turns one candidate in two takes longer.
      const bool is_busy = ++asked % 7 >= quiet_of_seven;
      Measurement m = timed(table_ns(input) * (is_busy && asked % 2 == 0 ? 4 : 1));
      m.disturbed = is_busy;
      return m;
    };
    check_complete(run(task, disturbed, {.best = 1000, .turns = 21}, &pool));
    return pool;
  };
  const Pool some = measured(3), none = measured(0);
  for (std::size_t i = 0; i < before.rows.size(); ++i) {
    CHECK(some.rows[i].median_ns == Approx(before.rows[i].median_ns).epsilon(0.002));
    CHECK_FALSE(some.rows[i].disturbed);
    CHECK(some.rows[i].num_samples < none.rows[i].num_samples);
    CHECK(none.rows[i].disturbed);
    CHECK(none.rows[i].num_samples == 21 * 7);
  }
}

TEST_CASE("a row that computes something wrong, or runs no more, loses its time") {
  const Task task = make_test_task("gemm");
  const Pool before = recorded(task, 60, exact);
  const auto kind_of = [](uint32_t low) { return low % 5; };
  const auto some_bad = [&](const MeasureInput& input) {
    const bool times = input.kind == MeasureKind::kTime;
    switch (kind_of(static_cast<uint32_t>(ir::fingerprint(input.program).low))) {
      case 0: return times ? exact(input) : failed(MeasureStatus::kWrongResult);
      case 1: return failed(times ? MeasureStatus::kCrash : MeasureStatus::kWrongResult);
      case 2: return times ? failed(MeasureStatus::kWrongResult) : exact(input);
      case 3: return failed(MeasureStatus::kCrash);
      default: return exact(input);
    }
  };
  Pool pool = before;
  check_complete(run(task, some_bad, {.best = 1000}, &pool));
  int seen[5] = {};
  for (std::size_t i = 0; i < pool.rows.size(); ++i) {
    const PoolRow& row = pool.rows[i];
    const uint32_t kind = kind_of(row.fingerprint);
    ++seen[kind];
    CHECK(row.is_final);
    CHECK(row.verified == (kind == 4));
    CHECK(row.status == (kind == 4   ? MeasureStatus::kOk
                         : kind == 3 ? MeasureStatus::kCrash
                                     : MeasureStatus::kWrongResult));
    CHECK((row.median_ns > 0) == (kind == 4));
  }
  for (const int count : seen) CHECK(count > 0);
  CHECK(pool.examples[static_cast<std::size_t>(MeasureStatus::kWrongResult)] == "made to fail");
  CHECK(pool.examples[static_cast<std::size_t>(MeasureStatus::kCrash)] == "made to fail");
}

TEST_CASE("remeasuring that ends early, or where nothing runs, changes nothing and says so") {
  const Task task = make_test_task("gemm");
  const Pool before = recorded(task, 20, noisy(0.2, 1));
  Pool pool = before;
  std::atomic<bool> cancel = false;
  // On the very last answer, too.
  for (const int at : {1, 21, 20 * 7 + 20}) {
    int asked = 0;
    TableMeasurer measurer([&](const MeasureInput& input) {
      if (++asked == at) cancel = true;
      return timed(2 * table_ns(input));
    });
    Inbox inbox(measurer, &cancel);
    const Result<RemeasureEnd> end = remeasure(task, inbox, {}, &pool);
    REQUIRE_OK(end);
    CHECK(*end == RemeasureEnd::kCancelled);
    CHECK(asked == at);
    CHECK(pool.rows == before.rows);
    // Who goes on with the inbox gets no answer of what was given up.
    cancel = false;
    MeasureInput input;
    input.task = &task;
    input.program = task.base;
    bool is_answered = false;
    inbox.submit(std::move(input), [&](const Measurement&) { is_answered = true; });
    inbox.wait_until([&] { return is_answered; });
    CHECK(is_answered);
    CHECK(pool.rows == before.rows);
    cancel = false;
  }
  for (const MeasureKind lost : {MeasureKind::kTime, MeasureKind::kVerify}) {
    const auto losing = [&](const MeasureInput& i) {
      return i.kind == lost ? failed(MeasureStatus::kDeviceLost) : exact(i);
    };
    const Result<RemeasureEnd> end = run(task, losing, {}, &pool);
    REQUIRE_OK(end);
    CHECK(*end == RemeasureEnd::kDeviceLost);
    CHECK(pool.rows == before.rows);
  }
  const auto nothing = [&](const RemeasureOptions& options, const TableMeasurer::Formula& formula) {
    const Result<RemeasureEnd> end = run(task, formula, options, &pool);
    REQUIRE_OK(end);
    CHECK(*end == RemeasureEnd::kNothingRan);
  };
  nothing({}, [](const MeasureInput&) { return failed(MeasureStatus::kTimeout); });
  nothing({.turns = 0}, exact);
  CHECK(pool.rows == before.rows);
  pool.rows.clear();
  nothing({}, exact);

  pool = before;
  pool.rows.front().fingerprint ^= 1;
  const std::vector<PoolRow> stale = pool.rows;
  CHECK_DIAG(run(task, exact, {.best = 1000}, &pool), PoolStale);
  CHECK(pool.rows == stale);
}

}  // namespace
}  // namespace prunerc
