#include "search/strategy/draft.h"

#include "search/model/calibrator.h"
#include "search/model/joined_scorer.h"
#include "search/space/draft_space.h"
#include "search/space/members.h"
#include "search/space/sampler.h"
#include "search/space/variation.h"
#include "search/strategy/drafter.h"
#include "search/strategy/selection.h"

#include <algorithm>
#include <map>
#include <set>

namespace prunerc::search {
namespace {

/// A sketch without symbols is drawn and replayed so often for a draft.
constexpr int kReplayedDraws = 96;
/// Best measured candidates that breed along.
constexpr std::size_t kMeasuredParents = 48;
constexpr double kCrossoverShare = 0.3;
/// Recall guard: the draft widens by this if what was found to be fastest stood behind its first
/// quarter, and narrows again by the same.
constexpr double kWiden = 1.5;
constexpr double kGuardedPart = 0.25;

class DraftProposer final : public Proposer {
 public:
  DraftProposer(const StrategyContext& context, const DraftOptions& options, const Scorer& scorer)
      : context_(context),
        options_(options),
        draft_(make_draft_space(context.task, context.space, Analyzer::kPrunerc, context.seed, {},
                                &context.pool)),
        is_lazy_(context.space.members == nullptr && !scorer.needs_programs()),
        own_calibrator_(context.task.target.kind, context.seed),
        calibrator_(context.calibrator != nullptr ? *context.calibrator : own_calibrator_),
        coefficients_(costmodel::hand_coefficients(context.task.target.kind)),
        draft_size_(static_cast<double>(options.draft_size)) {}

  std::vector<Candidate> propose(uint64_t round, std::size_t n, Population& population,
                                 Scorer& scorer) override {
    const auto every = static_cast<uint64_t>(std::max(1, options_.redraft_every));
    if (round % every == 0 || drafted_.size() < n) redraft(round, population);
    std::vector<Candidate> ranked = drafted_;
    set_scores(scorer, ranked);
    std::stable_sort(ranked.begin(), ranked.end(), scores_higher);
    return ranked;
  }

  void take_sample(std::size_t until, Population& population,
                   std::vector<Candidate>* batch) override {
    population.pick(sample_, until, SketchQuota::kNone, batch);
  }

  // Those that were instantiated have the prediction of the hand values.
  void predict(std::span<Candidate> candidates) override {
    if (coefficients_ == costmodel::hand_coefficients(context_.task.target.kind)) return;
    const std::vector<SymbolicScore> symbolic = evaluate(genomes_of(candidates));
    for (std::size_t i = 0; i < symbolic.size(); ++i) {
      if (symbolic[i].latency > 0) candidates[i].predicted_ns = symbolic[i].latency;
    }
  }

  void tell(std::span<const Candidate> candidates, std::span<const Measurement> measurements,
            double best_before_ns, Scorer& scorer) override {
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (!measurements[i].ok() || candidates[i].sketch < 0) continue;
      const double ns = measurements[i].median_ns;
      if (best_before_ns == 0 || ns < best_before_ns) guard(candidates[i]);
      if (best_before_ns == 0) best_before_ns = ns;
    }
    if (options_.calibrate) calibrate(candidates, measurements, scorer);
  }

 private:
  // Programs that were not asked for, each once.
  std::vector<Candidate> make_new(std::span<const Genome> genomes, const Population& population) {
    std::vector<Candidate> out;
    std::set<Fingerprint> known;
    for (std::optional<Candidate>& one :
         instantiate_all(context_.task, context_.space, genomes, context_.pool)) {
      if (!one || population.was_asked(one->fingerprint)) continue;
      if (known.insert(one->fingerprint).second) out.push_back(*std::move(one));
    }
    predict(out);
    return out;
  }

  // Decides between equal scores as a program's fingerprint does: by no order that means anything.
  static Fingerprint decision_hash(const Genome& genome) {
    Fingerprint out;
    out.low = static_cast<uint64_t>(genome.sketch);
    for (const schedule::Decision& decision : genome.decisions) {
      for (const int64_t value : decision) {
        out.low = hash_combine(out.low, static_cast<uint64_t>(value));
      }
    }
    out.high = mix64(out.low);
    return out;
  }

  // As make_new, but where symbols say all that ranking asks for, without programs: a replay costs
  // a hundred times as much as a rank, and few of a draft are ever picked (Population::pick).
  std::vector<Candidate> drafted_candidates(std::span<const Genome> genomes,
                                            const Population& population) {
    if (!is_lazy_) return make_new(genomes, population);
    std::vector<Candidate> out;
    std::set<Genome> known;
    for (const Genome& genome : genomes) {
      if (population.was_tried(genome)) continue;
      if (!known.insert(genome).second) continue;
      Candidate candidate;
      candidate.sketch = genome.sketch;
      candidate.trace.decisions = genome.decisions;
      candidate.fingerprint = decision_hash(genome);
      out.push_back(std::move(candidate));
    }
    std::vector<Genome> without_symbols;
    const std::vector<SymbolicScore> symbolic = evaluate(genomes_of(out));
    std::size_t kept = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!symbolic[i].is_known) without_symbols.push_back(genome_of(out[i]));
      if (!symbolic[i].is_known || !symbolic[i].fits) continue;
      out[i].predicted_ns = symbolic[i].latency;
      if (kept != i) out[kept] = std::move(out[i]);
      ++kept;
    }
    out.resize(kept);
    for (Candidate& made : make_new(without_symbols, population)) out.push_back(std::move(made));
    return out;
  }

  Genome picked_genome(const DraftPick& pick) const {
    const DraftSketch& sketch = draft_.sketches[static_cast<std::size_t>(pick.sketch)];
    Genome genome;
    genome.sketch = sketch.sketch;
    for (std::size_t d = 0; d < sketch.tables.size(); ++d) {
      genome.decisions.push_back(sketch.tables[d].decision(pick.drafted.genes[d]));
    }
    return genome;
  }

  // Empty if the genome is of another sketch.
  static std::vector<int32_t> genes_of(DraftSketch& sketch, const Genome& genome) {
    if (genome.sketch != sketch.sketch) return {};
    return search::genes_of(sketch, genome.decisions);
  }

  // What ran teaches the analyzer, a sketch at a time.
  void calibrate(std::span<const Candidate> candidates, std::span<const Measurement> measurements,
                 Scorer& scorer) {
    for (DraftSketch& sketch : draft_.sketches) {
      std::vector<std::vector<int32_t>> genes;
      std::vector<double> measured_ns;
      for (std::size_t i = 0; i < candidates.size(); ++i) {
        if (!measurements[i].ok() || candidates[i].sketch != sketch.sketch) continue;
        std::vector<int32_t> own = search::genes_of(sketch, candidates[i].trace.decisions);
        if (own.empty()) continue;
        genes.push_back(std::move(own));
        measured_ns.push_back(measurements[i].median_ns);
      }
      calibrator_.add(sketch, genes, measured_ns, static_cast<int32_t>(context_.stream));
    }
    // Another task of the target may have moved the coefficients as well.
    calibrator_.refit();
    if (calibrator_.values() == coefficients_) return;
    coefficients_ = calibrator_.values();
    for (std::vector<Candidate>* list : {&drafted_, &sample_}) predict(*list);
    scorer.predict_again([this](std::span<const Genome> genomes) {
      std::vector<double> ns;
      for (const SymbolicScore& one : evaluate(genomes)) ns.push_back(one.latency);
      return ns;
    });
  }

  // By the coefficients as they are now.
  std::vector<SymbolicScore> evaluate(std::span<const Genome> genomes) {
    return score_genomes(draft_, genomes, coefficients_);
  }

  static std::vector<Genome> genomes_of(std::span<const Candidate> candidates) {
    std::vector<Genome> out;
    for (const Candidate& c : candidates) out.push_back(genome_of(c));
    return out;
  }

  SketchOffer offer_of(DraftSketch& sketch, uint64_t round, const Population& population) {
    Drafter drafter(sketch, static_cast<std::size_t>(draft_size_), coefficients_,
                    hash_combine(context_.seed, hash_combine(context_.stream, round)));
    const std::span<const Population::Measured> measured = population.measured();
    for (const Population::Measured& m : measured) {
      const std::vector<int32_t> genes = genes_of(sketch, m.genome);
      if (genes.size() == sketch.tables.size()) drafter.exclude(genes);
    }
    for (std::size_t i = 0; i < std::min(kMeasuredParents, measured.size()); ++i) {
      const std::vector<int32_t> genes = genes_of(sketch, measured[i].genome);
      if (!genes.empty()) drafter.add_parent(genes);
    }
    if (context_.space.members != nullptr) {
      for (const int member : context_.space.members->of_sketch(sketch.sketch)) {
        const Candidate& c = context_.space.members->candidate(member);
        const std::vector<int32_t> genes = genes_of(sketch, genome_of(c));
        if (!genes.empty()) drafter.propose(genes);
      }
      drafter.finish();
    } else {
      const auto parts = static_cast<int64_t>(draft_.sketches.size());
      drafter.draw(options_.draws / parts);
      drafter.breed(options_.children / parts);
    }
    return {drafter.best(),
            {drafter.sample().begin(), drafter.sample().end()},
            drafter.counts().scored};
  }

  void redraft(uint64_t round, Population& population) {
    std::vector<SketchOffer> offers = context_.pool.map<SketchOffer>(
        draft_.sketches.size(),
        [&](std::size_t s) { return offer_of(draft_.sketches[s], round, population); });
    for (const SketchOffer& offer : offers) {
      population.count_drafted(static_cast<std::size_t>(offer.num_scored));
    }
    SelectionOptions selection;
    selection.size = static_cast<std::size_t>(draft_size_);
    selection.stratified_share = options_.stratified_share;
    selection.uniform_share = options_.uniform_share;
    std::vector<Genome> genomes;
    for (const DraftPick& pick : select_draft(offers, draft_, selection)) {
      genomes.push_back(picked_genome(pick));
    }
    Rng rng = population.rng(round);
    add_children_of_measured(population, rng, &genomes);
    for (const DraftSpace::NotParametric& drawn : draft_.not_parametric) {
      for (int i = 0; i < kReplayedDraws; ++i) {
        genomes.push_back(random_genome(context_.space, drawn.sketch, rng));
      }
    }
    drafted_ = drafted_candidates(genomes, population);
    rank_.clear();
    for (std::size_t i = 0; i < drafted_.size(); ++i) rank_.emplace(genome_of(drafted_[i]), i);
    sample_ = draw_sample(offers, population);
  }

  // Mutations and crossovers of the fastest measured ones. The analyzer may be wrong about a whole
  // region; what was measured there is right.
  void add_children_of_measured(const Population& population, Rng& rng,
                                std::vector<Genome>* genomes) const {
    const std::span<const Population::Measured> measured = population.measured();
    const std::size_t parents = std::min(kMeasuredParents, measured.size());
    const auto wanted = static_cast<int>(options_.measured_share * draft_size_);
    for (int i = 0; parents > 0 && i < wanted; ++i) {
      // The better of two drawn ranks.
      const auto draw = [&] { return std::min(rng.below(parents), rng.below(parents)); };
      const Genome& mother = measured[draw()].genome;
      const Genome& father = measured[draw()].genome;
      const bool cross = father.sketch == mother.sketch && rng.chance(kCrossoverShare);
      genomes->push_back(cross ? crossover(context_.space, mother, father, rng)
                               : mutate(context_.space, mother, {}, rng));
    }
  }

  // A few of each sketch's uniform sample, for the random share of the next batches.
  std::vector<Candidate> draw_sample(const std::vector<SketchOffer>& offers,
                                     const Population& population) {
    constexpr std::size_t kEach = 8;
    std::vector<Genome> genomes;
    for (std::size_t i = 0; i < kEach; ++i) {
      for (std::size_t s = 0; s < offers.size(); ++s) {
        const std::vector<Drafted>& sample = offers[s].sample;
        if (i < sample.size()) genomes.push_back(picked_genome({static_cast<int>(s), sample[i]}));
      }
    }
    return drafted_candidates(genomes, population);
  }

  // Recall guard: winners from the rear of the draft mean that the analyzer's order is poor here.
  void guard(const Candidate& fastest) {
    const auto at = rank_.find(genome_of(fastest));
    if (at == rank_.end() || options_.max_draft_size <= options_.draft_size) return;
    const double place = static_cast<double>(at->second) / static_cast<double>(rank_.size());
    draft_size_ = place > kGuardedPart ? draft_size_ * kWiden : draft_size_ / kWiden;
    draft_size_ = std::clamp(draft_size_, static_cast<double>(options_.draft_size),
                             static_cast<double>(options_.max_draft_size));
  }

  const StrategyContext context_;
  const DraftOptions options_;
  DraftSpace draft_;
  const bool is_lazy_;  // candidates get programs when they are picked
  Calibrator own_calibrator_;
  Calibrator& calibrator_;
  costmodel::CoefficientValues coefficients_;  // in use
  double draft_size_;
  std::vector<Candidate> drafted_;  // the draft, in the analyzer's order; maybe without programs
  std::map<Genome, std::size_t> rank_;  // places in it
  std::vector<Candidate> sample_;       // uniform draws of the same round
};

}  // namespace

std::unique_ptr<Strategy> make_draft_strategy(const StrategyContext& context,
                                              std::unique_ptr<Scorer> learned,
                                              const DraftOptions& options) {
  auto scorer = std::make_unique<JoinedScorer>(std::move(learned),
                                               options.blend ? Join::kRanks : Join::kLearnedAlone);
  auto proposer = std::make_unique<DraftProposer>(context, options, *scorer);
  const PopulationOptions batch = {.heuristics_share = kHeuristicsShare,
                                   .heuristics_by_scorer = false,
                                   .random_share = options.random_share,
                                   .rest = {Rest::kSample, Rest::kRanked, Rest::kDraws}};
  return make_population_strategy(context, batch, std::move(proposer), std::move(scorer));
}

}  // namespace prunerc::search
