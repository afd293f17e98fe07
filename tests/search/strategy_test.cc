// The parts of the evolutionary strategy, and the thread pool under it.
#include "ir/support/parallel.h"
#include "schedule/schedule.h"
#include "search/model/residual.h"
#include "search/space/sampler.h"
#include "search/strategy/network_use.h"
#include "search/strategy/strategies.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <atomic>
#include <cmath>
#include <set>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

TEST_CASE(
    "the pool runs every index once and keeps the order of results for any number of threads") {
  for (const int num_threads : {1, 2, 5}) {
    ThreadPool pool(num_threads);
    CHECK(pool.num_threads() == num_threads);
    for (const std::size_t count : {0, 1, 2, 1000}) {
      std::vector<std::atomic<int>> hits(count);
      const std::vector<std::size_t> squares = pool.map<std::size_t>(count, [&](std::size_t i) {
        ++hits[i];
        return i * i;
      });
      REQUIRE(squares.size() == count);
      for (std::size_t i = 0; i < count; ++i) {
        CHECK(hits[i] == 1);
        CHECK(squares[i] == i * i);
      }
    }
  }
}

TEST_CASE("candidates come back in the order of their genomes for any number of threads") {
  const Task task = make_test_task("gemm");
  const SearchSpace space = make_space(task).value();
  std::vector<Genome> genomes;
  for (uint64_t i = 0; i < 24; ++i) {
    Rng rng(4, i);
    genomes.push_back(
        random_genome(space, static_cast<int>(rng.below(space.sketches.size())), rng));
  }
  std::vector<Fingerprint> first;
  for (const int num_threads : {1, 2}) {
    ThreadPool pool(num_threads);
    std::vector<Fingerprint> found;
    for (const std::optional<Candidate>& made : instantiate_all(task, space, genomes, pool)) {
      found.push_back(made ? made->fingerprint : Fingerprint());
    }
    if (first.empty()) first = found;
    CHECK(found == first);
  }
}

TEST_CASE("a strategy proposes heuristic decisions first and nothing twice") {
  const Task task = make_test_task("dense_relu");
  const SearchSpace space = make_space(task).value();
  ThreadPool pool(1);
  const auto strategy = make_strategy(StrategyKind::kEvolution, {task, space, pool}).value();
  const std::vector<Candidate> batch = strategy->ask(space.sketches.size());
  REQUIRE_FALSE(batch.empty());
  const std::set<std::string> heuristic = [&] {
    std::set<std::string> out;
    for (const Sketch& sketch : space.sketches) out.insert(schedule::print(sketch.trace));
    return out;
  }();
  CHECK(heuristic.count(schedule::print(batch[0].trace)) == 1);
  std::set<Fingerprint> seen;
  for (const Candidate& candidate : batch) CHECK(seen.insert(candidate.fingerprint).second);
  for (int round = 0; round < 3; ++round) {
    for (const Candidate& candidate : strategy->ask(8)) {
      CHECK(seen.insert(candidate.fingerprint).second);
    }
  }
}

TEST_CASE("heuristic decisions come first where that is asked for, whatever the strategy does") {
  const Task task = make_test_task("dense_relu");
  const SearchSpace space = make_space(task).value();
  ThreadPool pool(1);
  std::set<std::string> heuristic;
  for (const Sketch& sketch : space.sketches) heuristic.insert(schedule::print(sketch.trace));
  for (const StrategyKind kind :
       {StrategyKind::kRandom, StrategyKind::kEvolution, StrategyKind::kPruner}) {
    INFO(to_string(kind));
    const auto num_heuristic = [&](std::optional<bool> first) {
      StrategyContext context = {task, space, pool, 3};
      context.heuristics = first;
      int64_t found = 0;
      for (const Candidate& c : make_strategy(kind, context).value()->ask(4)) {
        found += static_cast<int64_t>(heuristic.count(schedule::print(c.trace)));
      }
      return found;
    };
    CHECK(num_heuristic(false) < num_heuristic(true));  // one may be drawn
    CHECK(num_heuristic(true) == num_heuristic(std::nullopt));
    CHECK(num_heuristic(true) >= 2);
  }
}

TEST_CASE("a strategy that prefers a checkpoint may be told to start from none") {
  const NetworkUse use = *network_use(StrategyKind::kPruner);
  const auto target = ir::TargetKind::kCpu;
  CHECK(open_network(use, "", target, 1).value()->came_trained());
  CHECK_FALSE(open_network(use, std::string(kNoCheckpoint), target, 1).value()->came_trained());
  const NetworkUse offline = *network_use(StrategyKind::kPrunerOffline);
  CHECK_DIAG(open_network(offline, std::string(kNoCheckpoint), target, 1), ModelMissing);
}

TEST_CASE("what a strategy was told it does not propose again") {
  const Task task = make_test_task("row_sum");
  const SearchSpace space = make_space(task).value();
  ThreadPool pool(1);
  const std::vector<Candidate> known =
      make_strategy(StrategyKind::kEvolution, {task, space, pool}).value()->ask(4);
  const std::vector<Measurement> times(known.size());
  const auto strategy = make_strategy(StrategyKind::kEvolution, {task, space, pool}).value();
  strategy->tell(known, times);
  std::set<Fingerprint> told;
  for (const Candidate& candidate : known) told.insert(candidate.fingerprint);
  for (const Candidate& candidate : strategy->ask(100))
    CHECK(told.count(candidate.fingerprint) == 0);
}

TEST_CASE("the residual follows near measurements and forgets far ones") {
  const Genome here = {0, {{2}, {3}, {1}}}, near = {0, {{2}, {3}, {2}}}, far = {0, {{9}, {9}, {9}}};
  const Genome other_sketch = {1, {{2}, {3}, {1}}};
  ResidualModel residual;
  CHECK(residual.correction(here) == 0);
  residual.add(here, 100, 200);
  CHECK(residual.correction(here) > 0.3);
  CHECK(residual.correction(near) < residual.correction(here));
  CHECK(residual.correction(far) < residual.correction(near));
  CHECK(residual.correction(other_sketch) == 0);
  for (int i = 0; i < 10; ++i) residual.add(here, 100, 50);
  CHECK(residual.correction(here) < 0);
}

TEST_CASE("failures make their neighbourhood look slow, and senseless times are ignored") {
  const Genome here = {0, {{2}, {3}}};
  ResidualModel residual;
  residual.add(here, 0, 100);
  residual.add(here, 100, 0);
  CHECK(residual.correction(here) == 0);
  residual.add_failure(here);
  CHECK(residual.correction(here) > 0.3);
}

TEST_CASE("statuses have names that read back, and medians are medians") {
  std::set<std::string_view> names;
  for (int i = 0; i < kNumMeasureStatuses; ++i) {
    const auto status = static_cast<MeasureStatus>(i);
    CHECK(names.insert(to_string(status)).second);
    CHECK_FALSE(describe(status).empty());
    CHECK(measure_status_from_string(to_string(status)) == status);
  }
  CHECK_FALSE(measure_status_from_string("nonsense").has_value());
  Measurement m;
  m.samples_ns = {5, 1, 9, 3};
  summarize_samples(m);
  CHECK(m.median_ns == 4);
  CHECK(m.spread == Approx(0.5));
  m.samples_ns.clear();
  summarize_samples(m);
  CHECK(m.median_ns == 0);
}

}  // namespace
}  // namespace prunerc
