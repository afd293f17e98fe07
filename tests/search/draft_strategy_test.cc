// The strategy that drafts: legal, distinct, deterministic; learns where the fast candidates are.
#include "ir/equal.h"
#include "ir/support/parallel.h"
#include "ir/verify.h"
#include "search/model/calibrator.h"
#include "search/model/joined_scorer.h"
#include "search/space/sampler.h"
#include "search/strategy/draft.h"
#include "search/strategy/strategies.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

Measurement timed(double ns) {
  Measurement m;
  m.status = MeasureStatus::kOk;
  m.median_ns = ns;
  m.samples_ns = {ns};
  return m;
}

// What a search is to find: the more the tiles are like (3, .., 2), which no analyzer would
// prefer, the faster.
double hidden_ns(const Candidate& c) {
  double ns = 1000;
  for (const schedule::Decision& d : c.trace.decisions) {
    ns += 100 * std::abs(static_cast<double>(d.back()) - 2);
    ns += 70 * std::abs(static_cast<double>(d.front()) - 3);
  }
  return ns + 300 * static_cast<double>(c.sketch);
}

DraftOptions small() {
  DraftOptions options;
  options.draft_size = 48;
  options.max_draft_size = 96;
  options.draws = 2000;
  options.children = 2000;
  return options;
}

struct Run {
  int num_threads = 2;
  int rounds = 4;
  uint64_t seed = 0;
  Calibrator* calibrator = nullptr;
  std::vector<double>* times = nullptr;
};

std::vector<Fingerprint> run(const Task& task, const DraftOptions& options, const Run& how) {
  const SearchSpace space = make_space(task).value();
  ThreadPool pool(how.num_threads);
  StrategyContext context = {task, space, pool, how.seed};
  context.calibrator = how.calibrator;
  const std::unique_ptr<Strategy> strategy = make_draft_strategy(context, nullptr, options);
  std::vector<Fingerprint> asked;
  for (int round = 0; round < how.rounds; ++round) {
    const std::vector<Candidate> batch = strategy->ask(8);
    std::vector<Measurement> answers;
    for (const Candidate& c : batch) {
      CHECK(ir::verify(c.program).ok());
      asked.push_back(c.fingerprint);
      answers.push_back(timed(hidden_ns(c)));
      if (how.times != nullptr) how.times->push_back(answers.back().median_ns);
    }
    strategy->tell(batch, answers);
  }
  CHECK(strategy->num_drafted() > static_cast<int64_t>(asked.size()));
  return asked;
}

TEST_CASE("proposals are legal and distinct, and depend on neither threads nor chance") {
  for (const char* name : {"gemm", "conv2d_relu", "softmax_like"}) {
    INFO(name);
    const Task task = make_test_task(name);
    const std::vector<Fingerprint> one = run(task, small(), {.num_threads = 1});
    CHECK(one.size() == 32);
    CHECK(std::set<Fingerprint>(one.begin(), one.end()).size() == one.size());
    CHECK(run(task, small(), {}) == one);
    CHECK(run(task, small(), {.seed = 5}) != one);
  }
}

TEST_CASE("measurements steer the search away from the analyzer's order") {
  const Task task = make_test_task("conv2d_relu");
  std::vector<double> times;
  run(task, small(), {.rounds = 16, .times = &times});
  const auto mean = [&](std::size_t first) {
    double sum = 0;
    for (std::size_t i = first; i < first + 32; ++i) sum += times[i];
    return sum / 32;
  };
  CHECK(mean(times.size() - 32) < mean(0));
}

/// Scores by decisions alone, or says that it reads programs; the same scores.
class PlainScorer final : public Scorer {
 public:
  PlainScorer(bool reads_programs, int* num_scored)
      : reads_programs_(reads_programs), num_scored_(num_scored) {}
  void add(const Candidate&, double) override {}
  bool needs_programs() const override { return reads_programs_; }
  std::vector<double> scores(std::span<const Candidate> candidates) override {
    std::vector<double> out;
    for (const Candidate& c : candidates) {
      CHECK((!reads_programs_ || c.program.defined()));
      *num_scored_ += c.program.defined() ? 0 : 1;
      out.push_back(-hidden_ns(c));
    }
    return out;
  }

 private:
  bool reads_programs_;
  int* num_scored_;
};

TEST_CASE("programs are made of what is picked, and nothing else changes the choice") {
  for (const char* name : {"gemm", "conv2d_relu"}) {
    INFO(name);
    const Task task = make_test_task(name);
    const SearchSpace space = make_space(task).value();
    ThreadPool pool(2);
    DraftOptions options = small();
    options.blend = false;
    std::vector<std::vector<Fingerprint>> asked(2);
    for (const bool reads_programs : {false, true}) {
      int num_without = 0;
      const std::unique_ptr<Strategy> strategy =
          make_draft_strategy({task, space, pool},
                              std::make_unique<PlainScorer>(reads_programs, &num_without), options);
      const std::vector<Candidate> batch = strategy->ask(64);
      for (const Candidate& c : batch) {
        CHECK(ir::verify(c.program).ok());
        CHECK(c.fingerprint == ir::fingerprint(c.program));
        CHECK(c.predicted_ns > 0);
        asked[reads_programs ? 1 : 0].push_back(c.fingerprint);
      }
      CHECK((num_without > 0) == !reads_programs);
    }
    CHECK(asked[0].size() == 64);
    CHECK(std::set<Fingerprint>(asked[0].begin(), asked[0].end()).size() == 64);
    std::vector<Fingerprint> both;
    for (std::vector<Fingerprint>& list : asked) std::sort(list.begin(), list.end());
    std::set_intersection(asked[0].begin(), asked[0].end(), asked[1].begin(), asked[1].end(),
                          std::back_inserter(both));
    CHECK(both.size() >= 48);
  }
}

TEST_CASE("a batch too small for all defaults leaves half of it to the draft") {
  const Task task = make_test_task("conv2d_relu");
  const SearchSpace space = make_space(task).value();
  REQUIRE(space.sketches.size() > 4);
  ThreadPool pool(1);
  const auto strategy = make_draft_strategy({task, space, pool}, nullptr, small());
  int num_defaults = 0;
  for (const Candidate& c : strategy->ask(4)) {
    const Sketch& sketch = space.sketches[static_cast<std::size_t>(c.sketch)];
    num_defaults += c.trace.decisions == sketch.trace.decisions ? 1 : 0;
  }
  CHECK(num_defaults == 2);
}

// Times of random candidates on a machine whose cores are slower than the hand values say and hide
// everything else.
struct OtherMachine {
  DraftSpace draft;
  costmodel::CoefficientValues truth;

  OtherMachine(const Task& task, const SearchSpace& space)
      : draft(make_draft_space(task, space, Analyzer::kPrunerc, 1)),
        truth(costmodel::hand_coefficients(task.target.kind)) {
    truth[0] *= 4;
    truth[costmodel::kNotHiddenSlot] = 0;
  }

  void measure(int n_each, uint64_t seed, Calibrator* calibrator) {
    Rng rng(seed, 7);
    for (DraftSketch& sketch : draft.sketches) {
      std::vector<std::vector<int32_t>> genes(static_cast<std::size_t>(n_each));
      for (std::vector<int32_t>& one : genes) {
        for (const GeneTable& table : sketch.tables) one.push_back(table.draw(rng));
      }
      const std::vector<std::vector<double>> columns = columns_of(sketch, genes);
      std::vector<const double*> pointers;
      for (const std::vector<double>& column : columns) pointers.push_back(column.data());
      std::vector<double> ns(genes.size(), 1), fits(genes.size());
      double* const outputs[] = {ns.data(), fits.data()};
      costmodel::SymbolScratch scratch;
      sketch.symbols.score.evaluate(pointers, genes.size(), outputs, scratch, truth);
      calibrator->add(sketch, genes, ns, /*task=*/0);
    }
  }
};

TEST_CASE("a calibrator learns a machine from few candidates, and the same from the same") {
  const Task task = make_test_task("conv2d_relu");
  const SearchSpace space = make_space(task).value();
  OtherMachine machine(task, space);
  Calibrator one(task.target.kind, 3), two(task.target.kind, 3);
  const costmodel::CoefficientValues hand = one.values();
  machine.measure(1, 1, &one);
  CHECK_FALSE(one.refit());  // so few say nothing
  CHECK(one.values() == hand);
  for (Calibrator* c : {&one, &two}) machine.measure(40, 2, c);
  machine.measure(1, 1, &two);
  CHECK(one.num_samples() == two.num_samples());
  CHECK(one.refit());
  CHECK_FALSE(one.refit());  // nothing new
  CHECK(two.refit());
  CHECK(one.last().is_kept);
  CHECK(one.last().rank_after > one.last().rank_before);
  CHECK(one.last().residual_after < 0.5 * one.last().residual_before);
  CHECK(one.values() != hand);
  Calibrator again(task.target.kind, 3);
  machine.measure(1, 1, &again);
  machine.measure(40, 2, &again);
  again.refit();
  CHECK(again.values() == one.values());
}

TEST_CASE("what a search measures reaches the calibrator that it shares, unless it is not wanted") {
  const Task task = make_test_task("gemm");
  Calibrator shared(task.target.kind, 0);
  DraftOptions options = small();
  const std::size_t num_asked = run(task, options, {.rounds = 8, .calibrator = &shared}).size();
  CHECK(shared.num_samples() == num_asked);
  options.calibrate = false;
  run(task, options, {.rounds = 2, .calibrator = &shared});
  CHECK(shared.num_samples() == num_asked);
}

TEST_CASE("a space of few candidates is asked for to its end and then no more") {
  const Task task = make_test_task("total_sum", 1);
  const SearchSpace space = make_space(task).value();
  ThreadPool pool(2);
  const auto strategy = make_draft_strategy({task, space, pool}, nullptr, small());
  std::set<Fingerprint> all;
  std::size_t round = 0;
  for (; round < 200; ++round) {
    const std::vector<Candidate> batch = strategy->ask(16);
    if (batch.empty()) break;
    std::vector<Measurement> answers;
    for (const Candidate& c : batch) {
      CHECK(all.insert(c.fingerprint).second);
      answers.push_back(timed(hidden_ns(c)));
    }
    strategy->tell(batch, answers);
  }
  CHECK(round < 200);
  CHECK(strategy->ask(16).empty());
}

TEST_CASE("joined scores keep the analyzer's order until something was measured") {
  const Task task = make_test_task("gemm");
  const SearchSpace space = make_space(task).value();
  std::vector<Candidate> made;
  Rng rng(3);
  while (made.size() < 12) {
    const Genome genome = random_genome(space, 0, rng);
    Result<Candidate> one = instantiate(task, space, 0, genome.decisions);
    if (one) made.push_back(std::move(one).value());
  }
  JoinedScorer scorer(nullptr, Join::kRanks);
  set_scores(scorer, made);
  for (std::size_t i = 1; i < made.size(); ++i) {
    CHECK((made[i].score < made[i - 1].score) == (made[i].predicted_ns > made[i - 1].predicted_ns));
  }
  // The one that looked best fails: it falls behind.
  const auto best = std::max_element(
      made.begin(), made.end(), [](const auto& a, const auto& b) { return a.score < b.score; });
  const double before = best->score;
  scorer.add(*best, 0);
  scorer.learn(1);
  set_scores(scorer, made);
  CHECK(best->score < before);
  std::vector<Candidate> none;
  set_scores(scorer, none);
}

}  // namespace
}  // namespace prunerc
