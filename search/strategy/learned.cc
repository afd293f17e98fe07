#include "search/strategy/learned.h"

#include "schedule/schedule.h"
#include "search/model/scorer.h"
#include "search/space/members.h"
#include "search/space/sampler.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace prunerc::search {
namespace {

using costmodel::ProgramFeatures;
using Clock = std::chrono::steady_clock;

/// Passes of random draws before a space counts as exhausted.
constexpr int kMaxPasses = 5;
/// Features that are remembered beyond those of measured candidates. Bounds memory to about 100 MB.
constexpr std::size_t kMaxRemembered = 30'000;

bool is_tile(const schedule::DecisionSpace& space) {
  return space.primitive != schedule::PrimitiveKind::kSampleCategorical &&
         space.primitive != schedule::PrimitiveKind::kSampleComputeLocation;
}

// One decision moved to a neighbour: a prime factor between two levels, another candidate.
Genome mutate_one(const SearchSpace& space, const Genome& parent, double tile_share, Rng& rng) {
  const auto& spaces = space.sketches[static_cast<std::size_t>(parent.sketch)].spaces;
  std::vector<std::size_t> tiles, others;
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    if (spaces[i].count() > 1) (is_tile(spaces[i]) ? tiles : others).push_back(i);
  }
  if (tiles.empty() && others.empty()) return parent;
  const bool of_tiles = others.empty() || (!tiles.empty() && rng.chance(tile_share));
  const std::vector<std::size_t>& open = of_tiles ? tiles : others;
  const std::size_t at = open[static_cast<std::size_t>(rng.below(open.size()))];
  Genome child = parent;
  child.decisions[at] = schedule::mutate_decision(spaces[at], child.decisions[at], rng);
  if (space.members == nullptr) return child;
  const Members& members = *space.members;
  const int member =
      members.nearest(child.sketch, child.decisions, members.find(parent.sketch, parent.decisions));
  if (member < 0) return parent;
  return {parent.sketch, members.candidate(member).trace.decisions};
}

// Draws indices with chances proportional to scores above `zero`; those below count as 0. All
// equal if no score is above.
class Roulette {
 public:
  Roulette(const std::vector<Candidate>& of, double zero) {
    double total = 0;
    for (const Candidate& c : of) sums_.push_back(total += std::max(0.0, c.score - zero));
  }
  std::size_t draw(Rng& rng) const {
    if (sums_.back() <= 0) return static_cast<std::size_t>(rng.below(sums_.size()));
    const double at = rng.uniform() * sums_.back();
    const auto found = std::upper_bound(sums_.begin(), sums_.end(), at);
    return static_cast<std::size_t>(std::min(found, sums_.end() - 1) - sums_.begin());
  }

 private:
  std::vector<double> sums_;
};

class Learned final : public Strategy {
 public:
  Learned(const StrategyContext& context, const LearnedOptions& options)
      : context_(context), options_(options) {
    if (options.network == nullptr) return;
    network_ = make_network_model(context.task, context.space, options.network,
                                  static_cast<int32_t>(context.stream), context.pool);
  }

  int64_t num_drafted() const override { return num_drafted_; }
  double learn_seconds() const override { return learn_seconds_; }

  std::vector<Candidate> ask(std::size_t n) override {
    std::vector<Candidate> batch;
    if (n == 0) return batch;
    Rng rng(context_.seed, context_.stream, round_++);
    if (is_training_due()) train();
    const std::vector<Candidate> first = first_population(rng);
    const auto num_random = static_cast<std::size_t>(options_.eps_greedy * static_cast<double>(n));
    std::vector<Candidate> best = evolve(first, n, rng);
    take(best, n - std::min(n, num_random), &batch);
    take_random(first, n, rng, &batch);
    take(best, n, &batch);
    take_random(first, n, rng, &batch);
    made_.clear();
    return batch;
  }

  void tell(std::span<const Candidate> candidates,
            std::span<const Measurement> measurements) override {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const Candidate& candidate = candidates[i];
      seen_.insert(candidate.fingerprint);
      if (!sampled_.insert(candidate.fingerprint).second) continue;
      Sampled s;
      s.features = features_of(candidate);
      s.median_ns = measurements[i].ok() ? measurements[i].median_ns : 0;
      if (candidate.sketch >= 0) s.genome = Genome{candidate.sketch, candidate.trace.decisions};
      samples_.push_back(std::move(s));
    }
  }

 private:
  using FeaturesPtr = std::shared_ptr<const ProgramFeatures>;
  struct Sampled {
    FeaturesPtr features;
    double median_ns = 0;  // 0: did not run
    std::optional<Genome> genome;
  };

  FeaturesPtr features_of(const Candidate& candidate) const {
    if (network_ != nullptr) return nullptr;
    const auto known = features_.find(candidate.fingerprint);
    if (known != features_.end()) return known->second;
    return std::make_shared<const ProgramFeatures>(
        costmodel::statement_features(candidate.program, context_.task.target));
  }

  bool has_model() const { return network_ != nullptr || trees_ != nullptr; }

  bool is_training_due() const {
    if (network_ != nullptr) return false;
    if (samples_.size() < static_cast<std::size_t>(options_.first_training)) return false;
    if (trees_ == nullptr) return true;
    const double grown = static_cast<double>(samples_.size() - num_trained_on_);
    return grown > 0 && grown >= options_.retrain_growth * static_cast<double>(num_trained_on_);
  }

  void train() {
    const auto began = Clock::now();
    double best = 0;
    for (const Sampled& s : samples_) {
      if (s.median_ns > 0 && (best == 0 || s.median_ns < best)) best = s.median_ns;
    }
    std::vector<const ProgramFeatures*> programs;
    std::vector<float> labels;
    for (const Sampled& s : samples_) {
      programs.push_back(s.features.get());
      labels.push_back(s.median_ns > 0 ? static_cast<float>(best / s.median_ns) : 0.0f);
    }
    costmodel::TreeOptions trees = options_.trees;
    trees.seed = context_.seed;
    Result<costmodel::TreeEnsemble> fitted = costmodel::TreeEnsemble::fit(programs, labels, trees);
    // Data without a statement teaches nothing; the search goes on without a model.
    if (fitted) trees_ = std::make_unique<costmodel::TreeEnsemble>(std::move(fitted).value());
    num_trained_on_ = samples_.size();
    learn_seconds_ += std::chrono::duration<double>(Clock::now() - began).count();
  }

  /// A schedule of this round; no candidate: it is illegal.
  struct Made {
    std::optional<Candidate> candidate;
    FeaturesPtr features;
  };
  using Key = std::pair<int, std::vector<schedule::Decision>>;
  static Key key_of(const Genome& genome) { return {genome.sketch, genome.decisions}; }

  // A generation holds many copies of the one before, which are made once.
  void make_new(const std::vector<Genome>& genomes) {
    std::vector<std::pair<const Genome*, Made*>> missing;
    for (const Genome& genome : genomes) {
      const auto [at, is_new] = made_.try_emplace(key_of(genome));
      if (is_new) missing.emplace_back(&genome, &at->second);
    }
    context_.pool.for_each(missing.size(), [&](std::size_t i) {
      const auto [genome, out] = missing[i];
      Result<Candidate> result =
          instantiate(context_.task, context_.space, genome->sketch, genome->decisions);
      if (!result) return;
      out->candidate = std::move(result).value();
      out->features = features_of(*out->candidate);
    });
  }

  // Legal ones, scored, in the order of the genomes.
  std::vector<Candidate> realize_all(const std::vector<Genome>& genomes) {
    make_new(genomes);
    std::vector<Candidate> candidates;
    std::vector<const ProgramFeatures*> programs;
    for (const Genome& genome : genomes) {
      const Made& made = made_.at(key_of(genome));
      if (!made.candidate) continue;
      if (network_ == nullptr) {
        programs.push_back(made.features.get());
        features_[made.candidate->fingerprint] = made.features;
      }
      candidates.push_back(*made.candidate);
    }
    num_drafted_ += static_cast<int64_t>(candidates.size());
    std::vector<double> scores(candidates.size());
    if (network_ != nullptr) {
      scores = network_->scores(candidates);
    } else if (trees_ != nullptr) {
      trees_->predict(programs, scores);
    }
    for (std::size_t i = 0; i < candidates.size(); ++i) candidates[i].score = scores[i];
    return candidates;
  }

  std::vector<Candidate> first_population(Rng& rng) {
    if (features_.size() > kMaxRemembered) features_.clear();
    std::vector<Genome> genomes;
    for (int i = 0; i < options_.fresh; ++i) {
      genomes.push_back(random_genome(context_.space, random_sketch(context_.space, rng), rng));
    }
    std::vector<const Sampled*> fastest;
    for (const Sampled& s : samples_) {
      if (s.median_ns > 0 && s.genome) fastest.push_back(&s);
    }
    std::stable_sort(fastest.begin(), fastest.end(), [](const Sampled* a, const Sampled* b) {
      return a->median_ns < b->median_ns;
    });
    const auto most = static_cast<std::size_t>(options_.measured_share * options_.population);
    fastest.resize(std::min(fastest.size(), most));
    for (const Sampled* s : fastest) genomes.push_back(*s->genome);
    return realize_all(genomes);
  }

  // The best that were not asked for, of all generations; ties in the order of appearance.
  std::vector<Candidate> evolve(const std::vector<Candidate>& first, std::size_t n, Rng& rng) {
    std::vector<Candidate> best;
    std::set<Fingerprint> kept;
    const std::size_t capacity = n * static_cast<std::size_t>(options_.heap_factor);
    const auto offer = [&](const std::vector<Candidate>& generation) {
      for (const Candidate& candidate : generation) {
        if (seen_.contains(candidate.fingerprint)) continue;
        if (kept.insert(candidate.fingerprint).second) best.push_back(candidate);
      }
      std::stable_sort(best.begin(), best.end(),
                       [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
      while (best.size() > capacity) {
        kept.erase(best.back().fingerprint);
        best.pop_back();
      }
    };
    offer(first);
    if (!has_model()) return best;  // nothing to select by
    std::vector<Candidate> generation = first;
    for (int g = 0; g < options_.generations && !generation.empty(); ++g) {
      generation = next_generation(generation, rng);
      offer(generation);
    }
    return best;
  }

  std::vector<Candidate> next_generation(const std::vector<Candidate>& parents, Rng& rng) {
    // Trees are taught labels from 0 on; a network's scores have no zero.
    double zero = 0;
    if (network_ != nullptr) {
      zero = parents.front().score;
      for (const Candidate& c : parents) zero = std::min(zero, c.score);
    }
    const Roulette roulette(parents, zero);
    std::vector<Genome> genomes;
    for (int i = 0; i < options_.population; ++i) {
      const Candidate& parent = parents[roulette.draw(rng)];
      Genome genome{parent.sketch, parent.trace.decisions};
      if (rng.chance(options_.mutation)) {
        genome = mutate_one(context_.space, genome, options_.tile_mutation, rng);
      }
      genomes.push_back(std::move(genome));
    }
    return realize_all(genomes);
  }

  void take(const std::vector<Candidate>& from, std::size_t until, std::vector<Candidate>* batch) {
    for (const Candidate& candidate : from) {
      if (batch->size() >= until) return;
      if (seen_.insert(candidate.fingerprint).second) batch->push_back(candidate);
    }
  }

  void take_random(const std::vector<Candidate>& from, std::size_t until, Rng& rng,
                   std::vector<Candidate>* batch) {
    for (int pass = 0; pass < kMaxPasses && batch->size() < until && !from.empty(); ++pass) {
      for (std::size_t i = 0; i < 3 * until && batch->size() < until; ++i) {
        const Candidate& candidate = from[static_cast<std::size_t>(rng.below(from.size()))];
        if (seen_.insert(candidate.fingerprint).second) batch->push_back(candidate);
      }
    }
  }

  const StrategyContext context_;
  const LearnedOptions options_;
  std::unique_ptr<CandidateModel> network_;
  uint64_t round_ = 0;
  int64_t num_drafted_ = 0;
  double learn_seconds_ = 0;
  std::set<Fingerprint> seen_;     // asked for or told
  std::set<Fingerprint> sampled_;  // told
  std::vector<Sampled> samples_;
  std::map<Fingerprint, FeaturesPtr> features_;
  std::map<Key, Made> made_;  // in this round
  std::unique_ptr<costmodel::TreeEnsemble> trees_;
  std::size_t num_trained_on_ = 0;
};

}  // namespace

LearnedOptions ansor_options() { return {}; }

LearnedOptions metaschedule_options() {
  LearnedOptions options;
  options.population = 512;
  options.fresh = 512;
  options.heap_factor = 1;
  options.first_training = 100;
  options.retrain_growth = 0.2;
  return options;
}

Result<std::unique_ptr<Strategy>> make_learned(const StrategyContext& context,
                                               const LearnedOptions& options) {
  if (options.network == nullptr) PRUNERC_TRY_VOID(costmodel::check_xgboost());
  return std::unique_ptr<Strategy>(std::make_unique<Learned>(context, options));
}

Result<std::unique_ptr<Strategy>> make_offline_learned(const StrategyContext& context) {
  LearnedOptions options = ansor_options();
  options.network = context.network;
  return make_learned(context, options);
}

Result<std::unique_ptr<Strategy>> make_ansor(const StrategyContext& context) {
  return make_learned(context, ansor_options());
}

Result<std::unique_ptr<Strategy>> make_metaschedule(const StrategyContext& context) {
  return make_learned(context, metaschedule_options());
}

}  // namespace prunerc::search
