#include "search/strategy/population.h"

#include "costmodel/latency/roofline.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>

namespace prunerc::search {
namespace {

/// Rounds in which quotas hold, and the share of a batch that a sketch then gets at most.
constexpr uint64_t kQuotaRounds = 3;
constexpr double kMaxSketchShare = 0.5;
/// Draws per wanted candidate before the space counts as exhausted.
constexpr int kMaxDrawFactor = 12;

/// Adds the time until its end to a sum.
class Stopwatch {
 public:
  explicit Stopwatch(double* seconds) : seconds_(seconds) {}
  ~Stopwatch() { *seconds_ += std::chrono::duration<double>(Clock::now() - start_).count(); }

 private:
  using Clock = std::chrono::steady_clock;
  double* seconds_;
  Clock::time_point start_ = Clock::now();
};

class PopulationStrategy final : public Strategy {
 public:
  PopulationStrategy(const StrategyContext& context, const PopulationOptions& options,
                     std::unique_ptr<Proposer> proposer, std::unique_ptr<Scorer> scorer)
      : population_(context),
        options_(settled(context, options)),
        proposer_(std::move(proposer)),
        scorer_(std::move(scorer)) {}

  int64_t num_drafted() const override { return population_.num_drafted(); }
  double learn_seconds() const override { return learn_s_; }

  std::vector<Candidate> ask(std::size_t n) override {
    std::vector<Candidate> batch;
    if (n == 0) return batch;
    const uint64_t round = round_++;
    if (round == 0 && options_.heuristics_first) take_heuristics(n, &batch);
    if (batch.size() >= n) return batch;
    std::vector<Candidate> ranked;
    const std::size_t random = std::min(n - batch.size(), num_random(n, round));
    if (proposer_ != nullptr && (n - random > batch.size() || needs_proposals())) {
      {
        const Stopwatch learning(&learn_s_);
        scorer_->prepare();
      }
      ranked = proposer_->propose(round, n, population_, *scorer_);
      population_.pick(ranked, n - random, quota(round), &batch);
    }
    for (const Rest rest : options_.rest) {
      switch (rest) {
        case Rest::kSample: proposer_->take_sample(n, population_, &batch); break;
        case Rest::kRanked: population_.pick(ranked, n, SketchQuota::kNone, &batch); break;
        case Rest::kDraws: take_draws(n, round, &batch); break;
      }
    }
    if (proposer_ != nullptr) proposer_->end_round();
    return batch;
  }

  void tell(std::span<const Candidate> candidates,
            std::span<const Measurement> measurements) override {
    const double best_before_ns =
        population_.measured().empty() ? 0 : population_.measured()[0].median_ns;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const bool is_first = population_.is_first_answer(candidates[i].fingerprint);
      if (options_.first_answer_counts && !is_first) continue;
      population_.add(candidates[i], measurements[i]);
      scorer_->add(predicted(candidates[i]), measurements[i].ok() ? measurements[i].median_ns : 0);
    }
    population_.sort_measured();
    if (proposer_ == nullptr) return;
    const Stopwatch learning(&learn_s_);
    proposer_->tell(candidates, measurements, best_before_ns, *scorer_);
    scorer_->learn(population_.context().seed);
  }

 private:
  // Heuristics that are asked for take the places that ours give them.
  static PopulationOptions settled(const StrategyContext& context, PopulationOptions options) {
    if (!context.heuristics || *context.heuristics == options.heuristics_first) return options;
    options.heuristics_first = *context.heuristics;
    options.heuristics_share = kHeuristicsShare;
    options.heuristics_by_scorer = false;
    return options;
  }

  // Whether something else than ranked places takes what is proposed.
  bool needs_proposals() const {
    return std::any_of(options_.rest.begin(), options_.rest.end(),
                       [](Rest rest) { return rest != Rest::kDraws; });
  }

  // Candidates that come from a store have no prediction.
  Candidate predicted(Candidate candidate) const {
    if (scorer_->needs_predictions() && candidate.sketch >= 0 && candidate.predicted_ns <= 0) {
      const ir::Target& target = population_.context().task.target;
      candidate.predicted_ns = costmodel::estimate_latency(candidate.program, target).total_ns;
    }
    return candidate;
  }

  std::size_t num_random(std::size_t n, uint64_t round) const {
    const double share = options_.random_share * static_cast<double>(n);
    if (!options_.round_in_turns) return static_cast<std::size_t>(share);
    return static_cast<std::size_t>(share + (round % 2 == 0 ? 0.5 : 0.99));
  }

  SketchQuota quota(uint64_t round) const {
    const bool open = options_.sketch_quotas && round < kQuotaRounds;
    return open ? SketchQuota::kHalf : SketchQuota::kNone;
  }

  void take_heuristics(std::size_t n, std::vector<Candidate>* batch) {
    std::vector<Candidate> made = population_.make(population_.heuristics());
    if (proposer_ != nullptr) proposer_->predict(made);
    std::set<Fingerprint> programs;
    std::erase_if(made, [&](const Candidate& c) {
      return population_.was_asked(c.fingerprint) || !programs.insert(c.fingerprint).second;
    });
    for (Candidate& c : made) c.score = -c.predicted_ns;
    if (options_.heuristics_by_scorer) set_scores(*scorer_, made);
    std::stable_sort(made.begin(), made.end(), scores_higher);
    const auto part =
        static_cast<std::size_t>(options_.heuristics_share * static_cast<double>(n) + 0.5);
    population_.pick(made, made.size() <= n ? n : part, SketchQuota::kNone, batch);
  }

  void take_draws(std::size_t n, uint64_t round, std::vector<Candidate>* batch) {
    Rng rng = population_.rng(round).split(1);
    for (int attempt = 0; attempt < kMaxDrawFactor && batch->size() < n; ++attempt) {
      std::vector<Genome> genomes;
      for (std::size_t i = 0; i < 2 * (n - batch->size()) + 4; ++i) {
        genomes.push_back(population_.draw(rng));
      }
      std::vector<Candidate> made = population_.make(genomes);
      if (proposer_ != nullptr) proposer_->predict(made);
      population_.pick(made, n, SketchQuota::kNone, batch);
    }
  }

  Population population_;
  const PopulationOptions options_;
  const std::unique_ptr<Proposer> proposer_;
  const std::unique_ptr<Scorer> scorer_;
  uint64_t round_ = 0;
  double learn_s_ = 0;
};

}  // namespace

std::vector<Genome> Population::heuristics() const {
  std::vector<Genome> out;
  if (!context_.heuristics.value_or(true)) return out;
  for (std::size_t i = 0; i < context_.space.sketches.size(); ++i) {
    out.push_back(default_genome(context_.space, static_cast<int>(i)));
  }
  return out;
}

Genome Population::draw(Rng& rng) const {
  const int sketch = random_sketch(context_.space, rng);
  return random_genome(context_.space, sketch, rng);
}

std::vector<Candidate> Population::make(std::span<const Genome> genomes) {
  std::vector<Candidate> out;
  for (std::optional<Candidate>& made :
       instantiate_all(context_.task, context_.space, genomes, context_.pool)) {
    if (made) out.push_back(*std::move(made));
  }
  count_drafted(out.size());
  return out;
}

void Population::take(const Candidate& candidate, std::vector<Candidate>* batch) {
  if (asked_.insert(candidate.fingerprint).second) batch->push_back(candidate);
}

// Asked for or told; of one without a program: tried before. Remembers that it is tried now.
bool Population::is_known(const Candidate& candidate) {
  if (candidate.program.defined()) return asked_.contains(candidate.fingerprint);
  return !tried_.insert(genome_of(candidate)).second;
}

std::vector<std::optional<Candidate>> Population::with_programs(std::vector<Candidate> some) const {
  return context_.pool.map<std::optional<Candidate>>(
      some.size(), [&](std::size_t i) -> std::optional<Candidate> {
        Candidate& c = some[i];
        if (c.program.defined()) return std::move(c);
        Result<Candidate> made =
            instantiate(context_.task, context_.space, c.sketch, c.trace.decisions);
        if (!made) return std::nullopt;
        made->predicted_ns = c.predicted_ns;
        made->score = c.score;
        return std::move(made).value();
      });
}

void Population::pick(std::span<const Candidate> from, std::size_t until, SketchQuota quota,
                      std::vector<Candidate>* batch) {
  std::map<int, std::size_t> taken;
  const bool open = quota == SketchQuota::kHalf && context_.space.sketches.size() > 1;
  const auto most =
      open ? static_cast<std::size_t>(kMaxSketchShare * static_cast<double>(until)) + 1 : until;
  for (std::size_t next = 0; next < from.size() && batch->size() < until;) {
    std::vector<Candidate> some;
    std::map<int, std::size_t> planned = taken;
    std::set<Fingerprint> programs;  // copies take no place of a quota
    for (; next < from.size() && some.size() < until - batch->size(); ++next) {
      const Candidate& candidate = from[next];
      if (planned[candidate.sketch] >= most || is_known(candidate)) continue;
      if (candidate.program.defined() && !programs.insert(candidate.fingerprint).second) continue;
      ++planned[candidate.sketch];
      some.push_back(candidate);
    }
    for (std::optional<Candidate>& made : with_programs(std::move(some))) {
      if (!made || !asked_.insert(made->fingerprint).second) continue;
      ++taken[made->sketch];
      batch->push_back(*std::move(made));
    }
  }
}

void Population::add(const Candidate& candidate, const Measurement& measurement) {
  asked_.insert(candidate.fingerprint);
  tried_.insert(genome_of(candidate));
  if (measurement.ok() && candidate.sketch >= 0)
    measured_.push_back({genome_of(candidate), measurement.median_ns});
}

void Population::sort_measured() {
  std::stable_sort(measured_.begin(), measured_.end(),
                   [](const Measured& a, const Measured& b) { return a.median_ns < b.median_ns; });
}

std::unique_ptr<Strategy> make_population_strategy(const StrategyContext& context,
                                                   const PopulationOptions& options,
                                                   std::unique_ptr<Proposer> proposer,
                                                   std::unique_ptr<Scorer> scorer) {
  return std::make_unique<PopulationStrategy>(context, options, std::move(proposer),
                                              std::move(scorer));
}

}  // namespace prunerc::search
