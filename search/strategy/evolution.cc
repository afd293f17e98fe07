#include "search/strategy/evolution.h"

#include "search/model/residual.h"
#include "search/space/sampler.h"
#include "search/space/variation.h"

#include <algorithm>
#include <map>
#include <set>

namespace prunerc::search {
namespace {

/// Draws per wanted candidate before the space counts as exhausted.
constexpr int kMaxDrawFactor = 12;
/// Of the first batches no sketch gets more than this share, so that each is judged by
/// measurements.
constexpr double kMaxSketchShare = 0.5;
constexpr int kOpenRounds = 3;

class Evolution final : public Strategy {
 public:
  Evolution(const Task& task, const SearchSpace& space, const costmodel::CostModel& model,
            ThreadPool& pool, const StrategyOptions& options)
      : task_(task), space_(space), model_(model), pool_(pool), options_(options) {}

  int64_t num_drafted() const override { return num_drafted_; }

  std::vector<Candidate> ask(std::size_t n) override {
    std::vector<Candidate> batch;
    if (n == 0) return batch;
    const uint64_t round = round_++;
    if (round == 0) add_defaults(n, batch);
    if (options_.use_model && batch.size() < n) {
      const auto num_random = static_cast<std::size_t>(
          options_.random_share * static_cast<double>(n) + (round % 2 == 0 ? 0.5 : 0.99));
      const std::size_t wanted = n - batch.size() - std::min(n - batch.size(), num_random);
      if (wanted > 0) pick(evolve(round), batch.size() + wanted, round, batch);
    }
    add_random(n, round, batch);
    return batch;
  }

  void tell(std::span<const Candidate> candidates,
            std::span<const Measurement> measurements) override {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Candidate& candidate = candidates[i];
      seen_.insert(candidate.fingerprint);
      if (candidate.sketch < 0) continue;
      const Genome genome = genome_of(candidate);
      const Measurement& m = measurements[i];
      if (m.ok()) {
        residual_.add(genome, predicted_ns(candidate), m.median_ns);
        measured_.push_back({genome, m.median_ns});
      } else {
        residual_.add_failure(genome);
      }
    }
    std::stable_sort(measured_.begin(), measured_.end(), [](const Measured& a, const Measured& b) {
      return a.median_ns < b.median_ns;
    });
  }

 private:
  struct Measured {
    Genome genome;
    double median_ns;
  };

  // Candidates restored from a store come without a prediction.
  double predicted_ns(const Candidate& candidate) const {
    if (candidate.predicted_ns > 0) return candidate.predicted_ns;
    const costmodel::ModelInput input = {&candidate.program, &task_.target};
    costmodel::Score score;
    model_.predict(std::span(&input, 1), std::span(&score, 1));
    return score.predicted_ns;
  }

  std::vector<Candidate> realize_all(std::span<const Genome> genomes) {
    std::vector<Candidate> out;
    for (std::optional<Candidate>& made : realize(task_, space_, genomes, model_, pool_)) {
      if (!made) continue;
      made->score -= residual_.correction(genome_of(*made));
      out.push_back(*std::move(made));
    }
    num_drafted_ += static_cast<int64_t>(out.size());
    return out;
  }

  void add_defaults(std::size_t n, std::vector<Candidate>& batch) {
    std::vector<Genome> genomes;
    for (std::size_t i = 0; i < space_.sketches.size(); ++i) {
      genomes.push_back(default_genome(space_, static_cast<int>(i)));
    }
    std::vector<Candidate> made = realize_all(genomes);
    std::stable_sort(made.begin(), made.end(), scores_higher);
    for (Candidate& candidate : made) {
      if (batch.size() < n && seen_.insert(candidate.fingerprint).second) {
        batch.push_back(std::move(candidate));
      }
    }
  }

  Genome draw(Rng& rng) const { return random_genome(space_, random_sketch(space_, rng), rng); }

  // Fresh random genomes and the fastest measured ones.
  std::vector<Candidate> first_population(Rng& rng) {
    std::vector<Genome> genomes;
    const auto size = static_cast<std::size_t>(options_.population);
    const auto elite =
        std::min(measured_.size(),
                 static_cast<std::size_t>(options_.measured_share * static_cast<double>(size)));
    for (std::size_t i = 0; i < elite; ++i) genomes.push_back(measured_[i].genome);
    if (elite == 0) {
      for (std::size_t i = 0; i < space_.sketches.size(); ++i) {
        genomes.push_back(default_genome(space_, static_cast<int>(i)));
      }
    }
    while (genomes.size() < size) genomes.push_back(draw(rng));
    return realize_all(genomes);
  }

  Genome make_child(const std::vector<Candidate>& parents, Rng& rng) const {
    // Rank selection: the better of three drawn ranks, whatever the scores' scale.
    auto select = [&] {
      uint64_t rank = rng.below(parents.size());
      for (int i = 0; i < 2; ++i) rank = std::min(rank, rng.below(parents.size()));
      return genome_of(parents[static_cast<std::size_t>(rank)]);
    };
    const Genome mother = select();
    if (rng.chance(options_.mutation_share)) return mutate(space_, mother, rng);
    for (int attempt = 0; attempt < 4; ++attempt) {
      const Genome father = select();
      if (father.sketch != mother.sketch || father == mother) continue;
      return crossover(space_, mother, father, rng);
    }
    return mutate(space_, mother, rng);
  }

  // Every legal candidate that this round came across, best first, without duplicates.
  std::vector<Candidate> evolve(uint64_t round) {
    Rng rng(options_.seed, options_.stream, round);
    std::vector<Candidate> pool = first_population(rng);
    std::stable_sort(pool.begin(), pool.end(), scores_higher);
    for (int g = 0; g < options_.generations && !pool.empty(); ++g) {
      const auto num_parents =
          std::min(pool.size(), static_cast<std::size_t>(options_.population) / 2);
      const std::vector<Candidate> parents(pool.begin(),
                                           pool.begin() + static_cast<std::ptrdiff_t>(num_parents));
      std::vector<Genome> children;
      for (int i = 0; i < options_.population; ++i) children.push_back(make_child(parents, rng));
      for (Candidate& child : realize_all(children)) pool.push_back(std::move(child));
      std::stable_sort(pool.begin(), pool.end(), scores_higher);
      pool.erase(std::unique(pool.begin(), pool.end(),
                             [](const Candidate& a, const Candidate& b) {
                               return a.fingerprint == b.fingerprint;
                             }),
                 pool.end());
    }
    return pool;
  }

  void pick(std::vector<Candidate> pool, std::size_t until, uint64_t round,
            std::vector<Candidate>& batch) {
    std::map<int, std::size_t> taken;
    const bool open = round < kOpenRounds && space_.sketches.size() > 1;
    const auto most =
        open ? static_cast<std::size_t>(kMaxSketchShare * static_cast<double>(until)) + 1 : until;
    for (Candidate& candidate : pool) {
      if (batch.size() >= until) return;
      if (taken[candidate.sketch] >= most) continue;
      if (!seen_.insert(candidate.fingerprint).second) continue;
      ++taken[candidate.sketch];
      batch.push_back(std::move(candidate));
    }
  }

  void add_random(std::size_t n, uint64_t round, std::vector<Candidate>& batch) {
    Rng rng = Rng(options_.seed, options_.stream, round).split(1);
    for (int attempt = 0; attempt < kMaxDrawFactor && batch.size() < n; ++attempt) {
      std::vector<Genome> genomes;
      for (std::size_t i = 0; i < 2 * (n - batch.size()) + 4; ++i) genomes.push_back(draw(rng));
      for (Candidate& candidate : realize_all(genomes)) {
        if (batch.size() >= n) return;
        if (!seen_.insert(candidate.fingerprint).second) continue;
        batch.push_back(std::move(candidate));
      }
    }
  }

  const Task& task_;
  const SearchSpace& space_;
  const costmodel::CostModel& model_;
  ThreadPool& pool_;
  StrategyOptions options_;
  uint64_t round_ = 0;
  int64_t num_drafted_ = 0;
  std::set<Fingerprint> seen_;      // asked for or told
  std::vector<Measured> measured_;  // fastest first
  ResidualModel residual_;
};

}  // namespace

std::unique_ptr<Strategy> make_evolution(const Task& task, const SearchSpace& space,
                                         const costmodel::CostModel& model, ThreadPool& pool,
                                         const StrategyOptions& options) {
  return std::make_unique<Evolution>(task, space, model, pool, options);
}

}  // namespace prunerc::search
