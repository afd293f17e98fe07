#include "search/tune/replay.h"

#include "ir/equal.h"
#include "search/space/sampler.h"
#include "search/space/variation.h"
#include "search/tune/recorder.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <set>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

// Times of one to two us, and one candidate in 17 that does not run.
Measurement recorded_answer(const MeasureInput& input) {
  Measurement m = hashed_time(input);
  m.samples_ns.assign(7, m.samples_ns[0]);
  m.build_s = 0.25;
  m.measure_s = 0.5;
  if (ir::fingerprint(input.program).low % 17 != 0 || input.kind == MeasureKind::kVerify) return m;
  m.status = MeasureStatus::kTimeout;
  m.samples_ns.clear();
  m.median_ns = 0;
  return m;
}

Pool make_recorded(const char* name, int64_t candidates) {
  const Task task = make_test_task(name);
  Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  Pool pool = make_pool(task, *space);
  TableMeasurer measurer(recorded_answer);
  RecordOptions options;
  options.candidates = candidates;
  options.num_threads = 1;
  options.finals = {.best = 8, .within = 0, .turns = 3};
  options.check = {};
  REQUIRE_OK(record_pool(task, measurer, options, &pool));
  return pool;
}

ReplayTask make_replay(const Pool& pool) {
  ThreadPool threads(1);
  Result<ReplayTask> replay = ReplayTask::make(pool, threads);
  REQUIRE_OK(replay);
  return std::move(replay).value();
}

TuneOptions replay_options(StrategyKind kind, int64_t trials) {
  TuneOptions options;
  options.strategy = kind;
  options.trials = trials;
  options.seed = 3;
  options.num_threads = 1;
  return options;
}

const std::vector<StrategyKind> kCheapStrategies = {StrategyKind::kRandom, StrategyKind::kEvolution,
                                                    StrategyKind::kGrid};

TEST_CASE("a replay with one seed makes the same choices, byte for byte") {
  const ReplayTask task = make_replay(make_recorded("gemm", 160));
  for (const StrategyKind kind : kCheapStrategies) {
    std::string first;
    for (const int num_threads : {1, 2}) {
      std::string log;
      TuneOptions options = replay_options(kind, 96);
      options.num_threads = num_threads;
      options.log = [&](std::string_view line) { log += std::string(line) + "\n"; };
      REQUIRE_OK(replay({&task, 1}, options));
      if (first.empty()) first = log;
      CHECK(log == first);
    }
  }
}

TEST_CASE("every strategy finds the best of a pool when it may try all of it, and nothing else") {
  const Pool pool = make_recorded("conv2d_relu", 120);
  const ReplayTask task = make_replay(pool);
  const double best = pool.rows[static_cast<std::size_t>(pool.best())].median_ns;
  for (const StrategyKind kind : kCheapStrategies) {
    const Result<TuneReport> report = replay({&task, 1}, replay_options(kind, 1000));
    REQUIRE_OK(report);
    const TaskReport& row = report->tasks[0];
    INFO(to_string(kind));
    CHECK(row.best_ns == best);
    CHECK(row.verified);
    CHECK(row.stop == StopReason::kExhausted);
    CHECK(row.trials <= 120);
    // A random draw may miss a few of them.
    CHECK(row.trials >= (kind == StrategyKind::kGrid ? 120 : 100));
    CHECK(row.counts[static_cast<std::size_t>(MeasureStatus::kRejected)] == 0);
    CHECK(row.counts[static_cast<std::size_t>(MeasureStatus::kTimeout)] > 0);
  }
}

TEST_CASE("a best that nobody compared when it was recorded is not called verified") {
  Pool pool = make_recorded("gemm", 40);
  for (PoolRow& row : pool.rows) row.verified = false;
  const ReplayTask task = make_replay(pool);
  const Result<TuneReport> report = replay({&task, 1}, replay_options(StrategyKind::kGrid, 1000));
  REQUIRE_OK(report);
  CHECK(report->tasks[0].best_ns == pool.rows[static_cast<std::size_t>(pool.best())].median_ns);
  CHECK_FALSE(report->tasks[0].verified);
}

TEST_CASE("the clock is the recorded seconds") {
  const ReplayTask task = make_replay(make_recorded("gemm", 64));
  const Result<TuneReport> report = replay({&task, 1}, replay_options(StrategyKind::kRandom, 32));
  REQUIRE_OK(report);
  const TaskReport& row = report->tasks[0];
  CHECK(row.seconds.build == Approx(32 * 0.25).epsilon(0.02));
  CHECK(row.seconds.measure == Approx(32 * 0.5).epsilon(0.02));
  CHECK(report->seconds.total >= row.seconds.build + row.seconds.measure);
  REQUIRE(!row.curve.empty());
  // The last gain lies at the end of a batch of 16.
  CHECK(row.curve.back().seconds >= 16 * 0.74);
  // Ten recorded seconds are over after the second batch.
  TuneOptions limited = replay_options(StrategyKind::kRandom, 1000);
  limited.time_s = 10;
  limited.batches_in_flight = 1;
  const Result<TuneReport> stopped = replay({&task, 1}, limited);
  REQUIRE_OK(stopped);
  CHECK(stopped->tasks[0].trials == 16);
  CHECK(stopped->tasks[0].stop == StopReason::kTime);
}

TEST_CASE("several pools are tuned together") {
  const std::vector<ReplayTask> tasks = {make_replay(make_recorded("gemm", 48)),
                                         make_replay(make_recorded("softmax_like", 48))};
  TuneOptions options = replay_options(StrategyKind::kEvolution, 0);
  options.total_trials = 40;
  const Result<TuneReport> report = replay(tasks, options);
  REQUIRE_OK(report);
  CHECK(report->tasks[0].trials + report->tasks[1].trials == 40);
  for (const TaskReport& row : report->tasks) CHECK(row.best_ns > 0);
}

TEST_CASE("whatever is drawn, mutated or crossed in a space with members is a member") {
  const Task task = make_test_task("gemm");
  const ReplayTask replay = make_replay(make_recorded("gemm", 80));
  const Members& members = *replay.space.members;
  CHECK(members.size() == 80);
  CHECK(members.num_stale() == 0);
  CHECK(replay.space.size() == 80);
  Rng rng(1);
  std::set<int> seen;
  for (int i = 0; i < 400; ++i) {
    const int sketch = random_sketch(replay.space, rng);
    const Genome a = random_genome(replay.space, sketch, rng);
    const Genome b = mutate(replay.space, a, {}, rng);
    const Genome c = crossover(replay.space, a, random_genome(replay.space, sketch, rng), rng);
    for (const Genome& g : {a, b, c, default_genome(replay.space, sketch)}) {
      const int member = members.find(g.sketch, g.decisions);
      REQUIRE(member >= 0);
      seen.insert(member);
      const Result<Candidate> made = instantiate(task, replay.space, g.sketch, g.decisions);
      REQUIRE_OK(made);
      CHECK(members.find(made->fingerprint) == member);
    }
    if (members.of_sketch(sketch).size() > 1) CHECK(!(a == b));
  }
  CHECK(seen.size() == 80);
  std::vector<schedule::Decision> absent = members.candidate(0).trace.decisions;
  absent.back() = {1 << 20};
  CHECK_DIAG(instantiate(task, replay.space, members.candidate(0).sketch, absent), Unsupported);
}

TEST_CASE("the nearest member is the one with the fewest steps between") {
  const ReplayTask replay = make_replay(make_recorded("gemm", 80));
  const Members& members = *replay.space.members;
  for (int m = 0; m < members.size(); m += 7) {
    const Candidate& of = members.candidate(m);
    const Sketch& sketch = replay.space.sketches[static_cast<std::size_t>(of.sketch)];
    CHECK(members.nearest(of.sketch, of.trace.decisions) == m);
    const int other = members.nearest(of.sketch, of.trace.decisions, m);
    CHECK(other != m);
    if (other < 0) continue;
    const double nearest =
        decision_distance(sketch, of.trace.decisions, members.candidate(other).trace.decisions);
    CHECK(nearest > 0);
    for (const int rival : members.of_sketch(of.sketch)) {
      if (rival == m) continue;
      CHECK(decision_distance(sketch, of.trace.decisions,
                              members.candidate(rival).trace.decisions) >= nearest);
    }
  }
}

TEST_CASE("rows of another build are left out; a pool of nothing else is refused") {
  Pool pool = make_recorded("gemm", 24);
  pool.rows[5].fingerprint ^= 1;
  CHECK(make_replay(pool).space.members->num_stale() == 1);
  for (PoolRow& row : pool.rows) row.fingerprint ^= 2;
  ThreadPool threads(1);
  CHECK_DIAG(ReplayTask::make(pool, threads), PoolStale);
}

TEST_CASE("the grid visits every candidate of a small space once") {
  const Task task = make_test_task("gemm");
  Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  space->sketches.resize(2);
  int64_t all = 0;
  for (Sketch& sketch : space->sketches) {
    int64_t count = 1;
    for (std::size_t i = 0; i < sketch.spaces.size(); ++i) {
      schedule::DecisionSpace& s = sketch.spaces[i];
      if (s.primitive == schedule::PrimitiveKind::kSampleCategorical && i >= 2) {
        s.weights.assign(s.weights.size(), 0);
        s.weights[static_cast<std::size_t>(sketch.trace.decisions[i][0])] = 1;
      } else {
        count *= s.count();
      }
    }
    all += count;
  }
  ThreadPool threads(1);
  Result<std::unique_ptr<Strategy>> grid =
      make_strategy(StrategyKind::kGrid, {task, *space, threads});
  REQUIRE_OK(grid);
  std::set<Fingerprint> seen;
  std::set<std::pair<int, std::vector<schedule::Decision>>> places;
  while (true) {
    const std::vector<Candidate> batch = (*grid)->ask(16);
    if (batch.empty()) break;
    for (const Candidate& candidate : batch) {
      CHECK(seen.insert(candidate.fingerprint).second);
      CHECK(places.insert({candidate.sketch, candidate.trace.decisions}).second);
    }
  }
  CHECK(!seen.empty());
  CHECK(static_cast<int64_t>(seen.size()) <= all);
  CHECK((*grid)->num_drafted() <= all);
  CHECK((*grid)->num_drafted() >= static_cast<int64_t>(seen.size()));
}

TEST_CASE("strategies have names") {
  for (int i = 0; i < kNumStrategies; ++i) {
    const auto kind = static_cast<StrategyKind>(i);
    CHECK(strategy_from_string(to_string(kind)) == kind);
    CHECK(!describe(kind).empty());
    CHECK(rhythm_of(kind).batch >= rhythm_of(kind).in_flight);
  }
  CHECK(!strategy_from_string("luck"));
}

}  // namespace
}  // namespace prunerc
