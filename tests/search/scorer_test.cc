// What orders candidates: trees, networks, both joined with the analyzer.
#include "costmodel/xgb.h"
#include "search/model/joined_scorer.h"
#include "search/model/network_scorer.h"
#include "search/model/tree_scorer.h"
#include "search/space/sampler.h"
#include "search/strategy/network_use.h"
#include "search/strategy/strategies.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <algorithm>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

struct Candidates {
  Task task = make_test_task("gemm");
  SearchSpace space = make_space(task).value();
  ThreadPool pool{2};
  std::vector<Candidate> made;

  explicit Candidates(std::size_t n) {
    Rng rng(5);
    while (made.size() < n) {
      const Genome genome = random_genome(space, random_sketch(space, rng), rng);
      Result<Candidate> one = instantiate(task, space, genome.sketch, genome.decisions);
      if (one) made.push_back(std::move(one).value());
    }
    std::sort(made.begin(), made.end(), [](const Candidate& a, const Candidate& b) {
      return a.predicted_ns < b.predicted_ns;
    });
  }
};

TEST_CASE("trees learn which candidates are fast, and that failures are the slowest") {
  if (!costmodel::check_xgboost().ok()) return;
  Candidates c(48);
  TreeScorer trees(c.task, c.pool, {});
  CHECK_FALSE(trees.is_trained());
  for (std::size_t i = 0; i < c.made.size(); ++i) {
    // The slow end does not run at all.
    trees.add(c.made[i], i < 40 ? c.made[i].predicted_ns : 0);
  }
  trees.learn(1);
  CHECK_FALSE(trees.is_trained());  // nobody has asked yet
  trees.prepare();
  REQUIRE(trees.is_trained());
  const std::vector<double> scores = trees.scores(c.made);
  CHECK(scores.front() > scores[24]);
  CHECK(scores[2] > scores.back());
}

TEST_CASE("trees are trained from so many measurements on, and again when these have grown") {
  if (!costmodel::check_xgboost().ok()) return;
  Candidates c(30);
  TreeScorerOptions options;
  options.first_training = 10;
  options.growth = 0.5;
  TreeScorer trees(c.task, c.pool, options);
  const auto tell = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) trees.add(c.made[i], c.made[i].predicted_ns);
    trees.learn(1);
    trees.prepare();
  };
  tell(0, 9);
  CHECK_FALSE(trees.is_trained());
  tell(9, 10);
  REQUIRE(trees.is_trained());
  const std::vector<double> first = trees.scores(c.made);
  tell(10, 14);  // less than half as many again
  CHECK(trees.scores(c.made) == first);
  tell(14, 15);
  CHECK(trees.scores(c.made) != first);
}

TEST_CASE("the time that trees take to train counts as learning") {
  if (!costmodel::check_xgboost().ok()) return;
  Candidates c(16);
  const auto strategy =
      make_strategy(StrategyKind::kPrunerTrees, {c.task, c.space, c.pool}).value();
  std::vector<Measurement> answers(c.made.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    answers[i].status = MeasureStatus::kOk;
    answers[i].median_ns = c.made[i].predicted_ns;
  }
  strategy->tell(c.made, answers);
  const double before = strategy->learn_seconds();
  CHECK_FALSE(strategy->ask(64).empty());
  CHECK(strategy->learn_seconds() > before);
}

TEST_CASE("what is told twice counts once for the published searches") {
  if (!costmodel::check_xgboost().ok()) return;
  Candidates c(24);
  std::vector<Measurement> answers(c.made.size());
  for (std::size_t i = 0; i < answers.size(); ++i) {
    answers[i].status = MeasureStatus::kOk;
    answers[i].median_ns = c.made[i].predicted_ns;
  }
  std::vector<std::vector<Fingerprint>> asked;
  for (const bool twice : {false, true}) {
    const auto strategy = make_strategy(StrategyKind::kAnsor, {c.task, c.space, c.pool}).value();
    strategy->tell(c.made, answers);
    if (twice) strategy->tell(std::span(c.made).first(4), std::span(answers).first(4));
    asked.emplace_back();
    for (const Candidate& one : strategy->ask(16)) asked.back().push_back(one.fingerprint);
  }
  CHECK(asked[0].size() == 16);
  CHECK(asked[0] == asked[1]);
}

TEST_CASE("candidates of a store, without sketch and prediction, do not stop any strategy") {
  Candidates c(6);
  for (Candidate& one : c.made) one.predicted_ns = 0;
  c.made[2].sketch = -1;
  std::vector<Measurement> answers(c.made.size());
  for (Measurement& m : answers) {
    m.status = MeasureStatus::kOk;
    m.median_ns = 1000;
  }
  for (const StrategyKind kind :
       {StrategyKind::kRandom, StrategyKind::kEvolution, StrategyKind::kPruner}) {
    INFO(to_string(kind));
    const auto strategy = make_strategy(kind, {c.task, c.space, c.pool}).value();
    strategy->tell(c.made, answers);
    const std::vector<Candidate> asked = strategy->ask(8);
    CHECK(asked.size() == 8);
    for (const Candidate& one : asked) {
      CHECK(std::none_of(c.made.begin(), c.made.end(), [&](const Candidate& told) {
        return told.fingerprint == one.fingerprint;
      }));
    }
  }
}

TEST_CASE("a network that never learns keeps no records") {
  Candidates c(4);
  const NetworkUse use = *network_use(StrategyKind::kPrunerOffline);
  const std::shared_ptr<OnlineModel> shared = open_network(use, "", c.task.target.kind, 1).value();
  NetworkScorer scorer(c.task, c.space, shared, 0, c.pool);
  CHECK(scorer.is_trained());
  const std::vector<double> before = scorer.scores(c.made);
  for (const Candidate& one : c.made) scorer.add(one, one.predicted_ns);
  scorer.learn(1);
  CHECK(shared->records().size() == 0);
  CHECK(scorer.scores(c.made) == before);
}

}  // namespace
}  // namespace prunerc
