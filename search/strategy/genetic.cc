#include "search/strategy/genetic.h"

#include "search/strategy/roulette.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace prunerc::search {
namespace {

/// Passes over the first population before it counts as asked for.
constexpr int kMaxPasses = 5;
/// Fathers that are drawn for a crossover; a mother's sketch may have no other.
constexpr int kMaxFathers = 4;

class GeneticProposer final : public Proposer {
 public:
  GeneticProposer(const StrategyContext& context, const GeneticOptions& options)
      : options_(options) {
    if (options.explorer) explorer_.emplace(context, *options.explorer);
  }

  std::vector<Candidate> propose(uint64_t round, std::size_t n, Population& population,
                                 Scorer& scorer) override {
    rng_ = population.rng(round);
    first_ = make(first_genomes(round, population), population, scorer);
    std::set<Fingerprint> offered;
    std::vector<Candidate> best;
    add(first_, n, population, &offered, &best);
    if (!scorer.is_trained()) return best;  // nothing to select by
    std::vector<Candidate> parents = breeders(best, first_);
    for (int g = 0; g < options_.generations && !parents.empty(); ++g) {
      const std::vector<Genome> genomes = children(parents, population, scorer);
      std::vector<Candidate> generation = make(genomes, population, scorer);
      add(generation, n, population, &offered, &best);
      parents = breeders(best, std::move(generation));
    }
    return best;
  }

  void end_round() override {
    first_.clear();
    made_.clear();
  }

  void take_sample(std::size_t until, Population& population,
                   std::vector<Candidate>* batch) override {
    for (int pass = 0; pass < kMaxPasses && batch->size() < until && !first_.empty(); ++pass) {
      for (std::size_t i = 0; i < 3 * until && batch->size() < until; ++i) {
        population.take(first_[static_cast<std::size_t>(rng_.below(first_.size()))], batch);
      }
    }
  }

 private:
  std::vector<Genome> first_genomes(uint64_t round, Population& population) {
    const bool fills = options_.first == FirstPopulation::kMeasuredThenDraws;
    const auto size = static_cast<std::size_t>(options_.population);
    const std::span<const Population::Measured> fastest = population.measured().first(
        std::min(population.measured().size(),
                 static_cast<std::size_t>(options_.measured_share * static_cast<double>(size))));
    std::vector<Genome> out;
    for (std::size_t i = 0; !fills && i < size; ++i) out.push_back(population.draw(rng_));
    if (explorer_) out = with_draft(std::move(out), round, population);
    for (const Population::Measured& m : fastest) out.push_back(m.genome);
    if (fills && fastest.empty()) out = population.heuristics();
    while (fills && out.size() < size) out.push_back(population.draw(rng_));
    return out;
  }

  // The draft of this round or of the one before, best first, and some of the draws.
  std::vector<Genome> with_draft(std::vector<Genome> draws, uint64_t round,
                                 Population& population) {
    const ExplorerOptions& explorer = *options_.explorer;
    if (round % static_cast<uint64_t>(explorer.redraft_every) == 0 || drafted_.empty()) {
      drafted_ =
          explorer_->explore(draws, options_.mutation_share, options_.mutation, population, rng_);
    }
    draws.resize(std::min(draws.size(), static_cast<std::size_t>(explorer.ranked_draws)));
    draws.insert(draws.begin(), drafted_.begin(), drafted_.end());
    return draws;
  }

  // Legal ones, scored, in the order of the genomes. Generations hold many copies of the one before,
  // which are made once a round.
  std::vector<Candidate> make(std::span<const Genome> genomes, Population& population,
                              Scorer& scorer) {
    const StrategyContext& context = population.context();
    std::vector<Genome> missing;
    for (const Genome& genome : genomes) {
      if (made_.try_emplace(genome).second) missing.push_back(genome);
    }
    std::vector<std::optional<Candidate>> made =
        instantiate_all(context.task, context.space, missing, context.pool);
    for (std::size_t i = 0; i < missing.size(); ++i) made_[missing[i]] = std::move(made[i]);
    std::vector<Candidate> out;
    for (const Genome& genome : genomes) {
      if (const std::optional<Candidate>& one = made_.at(genome)) out.push_back(*one);
    }
    population.count_drafted(out.size());
    set_scores(scorer, out);
    return out;
  }

  // Keeps the best of all generations, best first. Ours breed from all of them, and ties are broken
  // by the programs; the published searches keep no more than two batches that were not asked for,
  // each program as it came first, in the order of appearance.
  void add(const std::vector<Candidate>& generation, std::size_t n, const Population& population,
           std::set<Fingerprint>* offered, std::vector<Candidate>* best) const {
    const bool is_first = best->empty() && offered->empty();
    if (options_.breeding == Breeding::kTournament) {
      offered->insert(Fingerprint());
      best->insert(best->end(), generation.begin(), generation.end());
      std::stable_sort(best->begin(), best->end(), scores_higher);
      const auto same = [](const Candidate& a, const Candidate& b) {
        return a.fingerprint == b.fingerprint;
      };
      // The first population breeds with its copies.
      if (!is_first) best->erase(std::unique(best->begin(), best->end(), same), best->end());
      return;
    }
    for (const Candidate& c : generation) {
      if (population.was_asked(c.fingerprint) || !offered->insert(c.fingerprint).second) continue;
      best->push_back(c);
    }
    std::stable_sort(best->begin(), best->end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    if (best->size() > 2 * n) best->resize(2 * n);
  }

  std::vector<Candidate> breeders(const std::vector<Candidate>& all,
                                  std::vector<Candidate> last) const {
    if (options_.breeding == Breeding::kRoulette) return last;
    const std::size_t half =
        std::min(all.size(), static_cast<std::size_t>(options_.population) / 2);
    return {all.begin(), all.begin() + static_cast<std::ptrdiff_t>(half)};
  }

  std::vector<Genome> children(const std::vector<Candidate>& parents, const Population& population,
                               const Scorer& scorer) {
    std::optional<Roulette> roulette;
    if (options_.breeding == Breeding::kRoulette) {
      double zero = 0;
      if (!scorer.has_zero()) {
        zero = parents.front().score;
        for (const Candidate& c : parents) zero = std::min(zero, c.score);
      }
      std::vector<double> weights;
      for (const Candidate& c : parents) weights.push_back(c.score - zero);
      roulette.emplace(weights);
    }
    const auto select = [&] {
      uint64_t at = roulette ? roulette->draw(rng_) : rng_.below(parents.size());
      for (int i = 0; !roulette && i < 2; ++i) at = std::min(at, rng_.below(parents.size()));
      return genome_of(parents[static_cast<std::size_t>(at)]);
    };
    std::vector<Genome> out;
    for (int i = 0; i < options_.population; ++i) {
      out.push_back(child(select(), select, population.context().space));
    }
    return out;
  }

  template <typename Select>
  Genome child(const Genome& mother, const Select& select, const SearchSpace& space) {
    if (rng_.chance(options_.mutation_share)) {
      return mutate(space, mother, options_.mutation, rng_);
    }
    if (!options_.crossover) return mother;
    for (int attempt = 0; attempt < kMaxFathers; ++attempt) {
      const Genome father = select();
      if (father.sketch != mother.sketch || father == mother) continue;
      return crossover(space, mother, father, rng_);
    }
    return mutate(space, mother, options_.mutation, rng_);
  }

  const GeneticOptions options_;
  std::optional<Explorer> explorer_;
  std::vector<Genome> drafted_;  // by it
  Rng rng_{0};                   // of this round
  std::vector<Candidate> first_;
  std::map<Genome, std::optional<Candidate>> made_;  // in this round; empty: illegal
};

}  // namespace

GeneticOptions ansor_options() {
  GeneticOptions out;
  out.first = FirstPopulation::kDrawsThenMeasured;
  out.population = 2048;
  out.measured_share = 0.2;
  out.breeding = Breeding::kRoulette;
  out.generations = 4;
  out.mutation_share = 0.85;
  out.crossover = false;
  out.mutation = {.tile_share = 0.9, .step_share = 0, .second_share = 0};
  out.batch = {.heuristics_first = false,
               .first_answer_counts = true,
               .random_share = 0.05,
               .round_in_turns = false,
               .sketch_quotas = false,
               .rest = {Rest::kSample, Rest::kRanked, Rest::kSample}};
  return out;
}

GeneticOptions metaschedule_options() {
  GeneticOptions out = ansor_options();
  out.population = 512;
  return out;
}

GeneticOptions pruner_release_options() {
  GeneticOptions out = ansor_options();
  out.population = 1536;
  out.measured_share = 0.1;
  out.generations = 1;
  out.batch.random_share = 0.1;
  out.explorer = ExplorerOptions{};
  return out;
}

GeneticOptions pruner_paper_options() {
  GeneticOptions out = pruner_release_options();
  out.measured_share = 0;
  out.generations = 0;
  out.explorer->analyzer = Analyzer::kPruner;
  out.explorer->ranked_draws = out.explorer->draft_size / 10;
  return out;
}

std::unique_ptr<Strategy> make_genetic(const StrategyContext& context,
                                       const GeneticOptions& options,
                                       std::unique_ptr<Scorer> scorer) {
  return make_population_strategy(context, options.batch,
                                  std::make_unique<GeneticProposer>(context, options),
                                  std::move(scorer));
}

}  // namespace prunerc::search
