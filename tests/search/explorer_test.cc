// The published Pruner's search: what its explorer drafts, what is ranked, and that its settings are those
// of costmodel/pruner/ORIGINAL.md.
#include "search/strategy/explorer.h"

#include "costmodel/xgb.h"
#include "ir/support/parallel.h"
#include "search/model/inputs.h"
#include "search/model/online.h"
#include "search/model/ranker.h"
#include "search/strategy/genetic.h"
#include "search/strategy/roulette.h"
#include "search/strategy/strategies.h"
#include "tests/search/programs.h"
#include "tests/support/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <fstream>
#include <map>
#include <set>

namespace prunerc {
namespace {

using namespace search;   // NOLINT: a test
using namespace testing;  // NOLINT: a test

/// Of a scorer that never learns: all scores are 0, as before the first training.
class Untrained final : public Scorer {
 public:
  void add(const Candidate&, double) override {}
  bool is_trained() const override { return false; }
  bool needs_programs() const override { return false; }
  std::vector<double> scores(std::span<const Candidate> candidates) override {
    return std::vector<double>(candidates.size());
  }
};

struct Setting {
  Task task = make_test_task("gemm");
  SearchSpace space = make_space(task).value();
  ThreadPool pool{2};
  StrategyContext context{task, space, pool, 7};
};

std::vector<Genome> draws(const Population& population, int n, uint64_t round) {
  Rng rng = population.rng(round);
  std::vector<Genome> out;
  for (int i = 0; i < n; ++i) out.push_back(population.draw(rng));
  return out;
}

double latency(const Setting& setting, const Genome& genome, Analyzer analyzer) {
  const Result<Candidate> made =
      instantiate(setting.task, setting.space, genome.sketch, genome.decisions);
  REQUIRE_OK(made);
  return published_latency_ms(made->program, setting.task, analyzer);
}

TEST_CASE("the explorer hands on distinct candidates that are new, the fastest first") {
  const Setting setting;
  for (const Analyzer analyzer : {Analyzer::kPruner, Analyzer::kPrunerRelease}) {
    ExplorerOptions options;
    options.analyzer = analyzer;
    options.draft_size = 40;
    Population population(setting.context);
    const std::vector<Genome> sample = draws(population, 200, 0);
    const auto explore = [&] {
      Explorer explorer(setting.context, options);
      Rng rng(3);
      return explorer.explore(sample, 0.85, ansor_options().mutation, population, rng);
    };
    const std::vector<Genome> drafted = explore();
    CHECK(population.num_drafted() == 3 * 200);
    REQUIRE(drafted.size() == 40);
    CHECK(std::set<Genome>(drafted.begin(), drafted.end()).size() == 40);
    std::vector<double> times;
    for (const Genome& genome : drafted) times.push_back(latency(setting, genome, analyzer));
    for (std::size_t i = 1; i < times.size(); ++i) CHECK(times[i - 1] <= times[i] * (1 + 1e-9));
    double best = latency(setting, sample.front(), analyzer);
    for (const Genome& genome : sample) best = std::min(best, latency(setting, genome, analyzer));
    CHECK(times.front() <= best * (1 + 1e-9));
    CHECK(explore() == drafted);
    // What was measured is not drafted again.
    const Result<Candidate> first =
        instantiate(setting.task, setting.space, drafted[0].sketch, drafted[0].decisions);
    REQUIRE_OK(first);
    population.add(*first, {});
    const std::vector<Genome> again = explore();
    CHECK(std::find(again.begin(), again.end(), drafted[0]) == again.end());
    CHECK(again.front() == drafted[1]);
  }
}

TEST_CASE("the first batch of an untrained search is the explorer's best, and one at random") {
  const Setting setting;
  for (const GeneticOptions& published : {pruner_paper_options(), pruner_release_options()}) {
    GeneticOptions options = published;
    options.population = 120;
    options.explorer->draft_size = 30;
    const auto strategy = make_genetic(setting.context, options, std::make_unique<Untrained>());
    const std::vector<Candidate> batch = strategy->ask(10);
    REQUIRE(batch.size() == 10);
    const Analyzer analyzer = options.explorer->analyzer;
    std::vector<double> times;
    for (const Candidate& c : batch) {
      times.push_back(published_latency_ms(c.program, setting.task, analyzer));
    }
    CHECK(std::is_sorted(times.begin(), times.begin() + 9));
    // No schedule of ours came in between.
    Population population(setting.context);
    for (const Genome& genome : draws(population, 120, 0)) {
      CHECK(times[0] <= latency(setting, genome, analyzer) * (1 + 1e-9));
    }
  }
}

TEST_CASE("a roulette draws by weight, and evenly where nothing has any") {
  Rng rng(5);
  const std::vector<double> weights = {0, 1, -4, 3}, none = {0, -1};
  const Roulette some(weights), even(none);
  std::vector<int> hits(4), both(2);
  for (int i = 0; i < 4000; ++i) {
    ++hits[some.draw(rng)];
    ++both[even.draw(rng)];
  }
  CHECK(hits[0] == 0);
  CHECK(hits[2] == 0);
  CHECK(hits[3] > 2.5 * hits[1]);
  CHECK(hits[3] < 3.5 * hits[1]);
  CHECK(std::abs(both[0] - both[1]) < 400);
}

std::string number_text(double value) {
  const bool is_small = value > 0 && value < 0.01;
  return is_small ? fmt::format("{:.0e}", value) : fmt::format("{:g}", value);
}

// By the name of a row of ORIGINAL.md: what this build has of Ansor and MetaSchedule.
std::map<std::string, std::string> rivals_of_this_build() {
  std::map<std::string, std::string> out;
  const auto add = [&](const std::string& who, const GeneticOptions& options, StrategyKind kind) {
    out[who + ": population"] = number_text(options.population);
    out[who + ": generations"] = number_text(options.generations);
    out[who + ": mutation probability"] = number_text(options.mutation_share);
    out[who + ": part of the measured"] = number_text(options.measured_share);
    out[who + ": eps"] = number_text(options.batch.random_share);
    out[who + ": programs a round"] = number_text(rhythm_of(kind).batch);
    out[who + ": rounds in flight"] = number_text(rhythm_of(kind).in_flight);
  };
  add("Ansor", ansor_options(), StrategyKind::kAnsor);
  add("MetaSchedule", metaschedule_options(), StrategyKind::kMetaSchedule);
  const costmodel::TreeOptions trees;
  out["trees: depth"] = number_text(trees.max_depth);
  out["trees: gamma"] = number_text(trees.gamma);
  out["trees: eta"] = number_text(trees.eta);
  out["trees: at most"] = number_text(trees.max_trees);
  out["trees: patience"] = number_text(trees.patience);
  return out;
}

// The same of Pruner, TenSet and TLP.
std::map<std::string, std::string> values_of_this_build() {
  const GeneticOptions release = pruner_release_options(), paper = pruner_paper_options();
  const ExplorerOptions& draft = *release.explorer;
  const StrategyRhythm rhythm = rhythm_of(StrategyKind::kPrunerRelease);
  const Recipe pacm = recipe_of(costmodel::model::NetworkKind::kPacmPaper);
  const Recipe mlp = recipe_of(costmodel::model::NetworkKind::kTensetMlp);
  const Recipe tlp = recipe_of(costmodel::model::NetworkKind::kTlp);
  const auto gpu_tlp = network_options(costmodel::model::NetworkKind::kTlp, ir::TargetKind::kCuda);
  const auto tuning = costmodel::model::published_fine_tuning();
  const auto squares = costmodel::model::published_squares();
  const auto text = number_text;
  return {
      {"population", text(release.population)},
      {"population of the paper's draft", text(paper.population)},
      {"generations on the analyzer", text(draft.generations)},
      {"generations on the model", text(release.generations)},
      {"generations on the model, paper", text(paper.generations)},
      {"mutation probability", text(release.mutation_share)},
      {"crossover", release.crossover ? "1" : "0"},
      {"chance that a tile changes", text(release.mutation.tile_share)},
      {"drafted", text(draft.draft_size)},
      {"rounds between drafts", text(draft.redraft_every)},
      {"random schedules ranked", text(draft.ranked_draws)},
      {"random schedules ranked, paper", text(paper.explorer->ranked_draws)},
      {"measured schedules ranked", text(release.measured_share * release.population)},
      {"eps", text(release.batch.random_share)},
      {"heuristic schedules", release.batch.heuristics_first ? "1" : "0"},
      {"programs a round", text(rhythm.batch)},
      {"rounds in flight", text(rhythm.in_flight)},
      {"learning rate", text(pacm.train.lr)},
      {"weight decay", text(pacm.train.optimizer.weight_decay)},
      {"epochs", text(pacm.train.epochs)},
      {"batch", text(pacm.train.batch)},
      {"gradient clip", text(pacm.train.clip)},
      {"patience", text(pacm.train.patience)},
      {"squares: learning rate", text(squares.lr)},
      {"squares: epochs", text(squares.epochs)},
      {"fine-tuning: learning rate", text(tuning.lr)},
      {"fine-tuning: epochs", text(tuning.epochs)},
      {"fine-tuning: clip", text(tuning.clip)},
      {"TenSetMLP: patience", text(mlp.train.patience)},
      {"TLP: batch", text(tlp.train.batch)},
      {"TLP: tokens, CPU",
       fmt::format("{} x {}", tlp.network.token_length, tlp.network.token_inputs)},
      {"TLP: tokens, GPU", fmt::format("{} x {}", gpu_tlp.token_length, gpu_tlp.token_inputs)},
      {"statement inputs", text(pacm.network.statement_inputs)},
      {"flow inputs", text(pacm.network.flow_inputs)},
      {"flow steps", text(costmodel::kNumReleasedFlowSteps)},
      {"momentum", text(kPublishedKeep)},
      {"rounds between adaptations", text(kPublishedCadence)},
  };
}

TEST_CASE("the page of the original's constants has this build's values") {
  std::ifstream page("costmodel/pruner/ORIGINAL.md");
  REQUIRE(page.good());
  std::map<std::string, std::string> wanted = values_of_this_build();
  wanted.merge(rivals_of_this_build());
  std::string line;
  while (std::getline(page, line)) {
    if (!line.starts_with("| ")) continue;
    std::vector<std::string> cells;
    for (std::size_t at = 1; at < line.size();) {
      const std::size_t end = line.find('|', at);
      if (end == std::string::npos) break;
      const std::size_t first = line.find_first_not_of(' ', at);
      const std::size_t last = line.find_last_not_of(' ', end - 1);
      cells.push_back(first > last ? "" : line.substr(first, last + 1 - first));
      at = end + 1;
    }
    INFO(line);
    REQUIRE(cells.size() == 4);  // name, published, ours, why
    const bool is_number = !cells[2].empty() && (std::isdigit(cells[2][0]) != 0);
    const auto known = wanted.find(cells[0]);
    // No number stands there that nothing holds to the code.
    CHECK(is_number == (known != wanted.end()));
    if (known == wanted.end()) continue;
    CHECK(cells[2] == known->second);
    // Who differs says why.
    CHECK((cells[1] == cells[2] || !cells[3].empty()));
    wanted.erase(known);
  }
  for (const auto& [name, value] : wanted) FAIL_CHECK("no row of " << name << ", " << value);
}

}  // namespace
}  // namespace prunerc
