#include "costmodel/latency/roofline.h"
#include "costmodel/xgb.h"
#include "search/strategy/genetic.h"
#include "search/tune/recorder.h"
#include "search/tune/replay.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

// What the analyzer says is the truth here, so that there is something to learn.
Measurement modelled_time(const MeasureInput& input) {
  Measurement m;
  m.status = MeasureStatus::kOk;
  m.samples_ns.assign(20, costmodel::estimate_latency(input.program, input.task->target).total_ns);
  m.build_s = 0.1;
  m.measure_s = 0.1;
  summarize_samples(m);
  return m;
}

ReplayTask modelled_task(int64_t candidates) {
  const Task task = make_test_task("gemm");
  Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  Pool pool = make_pool(task, *space);
  TableMeasurer measurer(modelled_time);
  RecordOptions options;
  options.candidates = candidates;
  options.num_threads = 2;
  options.check = {};
  REQUIRE_OK(record_pool(task, measurer, options, &pool));
  ThreadPool threads(2);
  Result<ReplayTask> replay = ReplayTask::make(pool, threads);
  REQUIRE_OK(replay);
  return std::move(replay).value();
}

TuneReport run(const ReplayTask& task, StrategyKind kind, uint64_t seed, int64_t trials,
               std::string* log = nullptr) {
  TuneOptions options;
  options.strategy = kind;
  options.seed = seed;
  options.trials = trials;
  options.num_threads = 2;
  options.batch = 16;
  if (log != nullptr) {
    options.log = [log](std::string_view line) { *log += std::string(line) + "\n"; };
  }
  Result<TuneReport> report = replay({&task, 1}, options);
  REQUIRE_OK(report);
  return std::move(report).value();
}

// Without the library the strategies say so.
bool has_library() {
  if (costmodel::check_xgboost().ok()) return true;
  const Task task = make_test_task("gemm");
  Result<SearchSpace> space = make_space(task);
  REQUIRE_OK(space);
  ThreadPool threads(1);
  CHECK_DIAG(make_strategy(StrategyKind::kAnsor, {task, *space, threads}), ModelLibrary);
  return false;
}

TEST_CASE("the learned baselines make the same choices with one seed, and differ between seeds") {
  if (!has_library()) return;
  const ReplayTask task = modelled_task(240);
  for (const StrategyKind kind : {StrategyKind::kAnsor, StrategyKind::kMetaSchedule}) {
    std::string first, second, other;
    run(task, kind, 1, 64, &first);
    run(task, kind, 1, 64, &second);
    run(task, kind, 2, 64, &other);
    CHECK(first == second);
    CHECK(first != other);
  }
}

TEST_CASE("the learned baseline finds good candidates earlier than chance") {
  if (!has_library()) return;
  const ReplayTask task = modelled_task(600);
  double learned = 0, random = 0;
  for (const uint64_t seed : {1, 2, 3}) {
    const TuneReport report = run(task, StrategyKind::kAnsor, seed, 96);
    CHECK(report.tasks[0].trials == 96);
    CHECK(report.tasks[0].seconds.learn > 0);
    CHECK(report.tasks[0].drafted >= 96);
    learned += report.tasks[0].best_ns;
    random += run(task, StrategyKind::kRandom, seed, 96).tasks[0].best_ns;
  }
  CHECK(learned <= random);
}

TEST_CASE("the settings are the published ones") {
  const GeneticOptions ansor = ansor_options();
  CHECK(ansor.population == 2048);
  CHECK(ansor.generations == 4);
  CHECK(ansor.mutation_share == 0.85);
  CHECK(ansor.batch.random_share == 0.05);
  CHECK(ansor.measured_share == 0.2);
  CHECK_FALSE(ansor.crossover);
  CHECK_FALSE(ansor.batch.heuristics_first);
  const GeneticOptions meta = metaschedule_options();
  CHECK(meta.population == 512);
  CHECK(meta.generations == 4);
  CHECK(rhythm_of(StrategyKind::kAnsor).batch == 64);
}

}  // namespace
}  // namespace prunerc
