#include "search/strategy/draft.h"

#include "costmodel/xgb.h"
#include "search/model/calibrator.h"
#include "search/model/verifier.h"
#include "search/space/members.h"
#include "search/space/sampler.h"
#include "search/space/variation.h"
#include "search/strategy/drafter.h"
#include "search/strategy/selection.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <set>

namespace prunerc::search {
namespace {

/// A sketch without symbols is drawn and replayed so often for a draft.
constexpr int kReplayedDraws = 96;
/// Best measured candidates that breed along.
constexpr std::size_t kMeasuredParents = 48;
constexpr double kCrossoverShare = 0.3;
/// Of the first batches no sketch gets more than this share, so that each is judged by
/// measurements.
constexpr double kMaxSketchShare = 0.5;
constexpr int kOpenRounds = 3;
/// Recall guard: the draft widens by this if what was found to be fastest stood behind its first
/// quarter, and narrows again by the same.
constexpr double kWiden = 1.5;
constexpr double kGuardedPart = 0.25;

class DraftStrategy final : public Strategy {
 public:
  DraftStrategy(const Task& task, const SearchSpace& space, std::unique_ptr<CandidateModel> model,
                ThreadPool& pool, const DraftOptions& options)
      : task_(task),
        space_(space),
        pool_(pool),
        options_(options),
        draft_(make_draft_space(task, space, options.analyzer, options.seed, {}, &pool)),
        verifier_(std::move(model), options.blend),
        is_lazy_(space.members == nullptr && options.analyzer == Analyzer::kPrunerc &&
                 options.verify == VerifySet::kDraft && !verifier_.needs_programs()),
        own_calibrator_(task.target.kind, options.seed),
        calibrator_(options.calibrator != nullptr ? *options.calibrator : own_calibrator_),
        coefficients_(costmodel::hand_coefficients(task.target.kind)),
        draft_size_(static_cast<double>(options.draft_size)) {}

  int64_t num_drafted() const override { return num_drafted_; }
  double learn_seconds() const override { return learn_s_; }

  std::vector<Candidate> ask(std::size_t n) override {
    std::vector<Candidate> batch;
    if (n == 0) return batch;
    const uint64_t round = round_++;
    if (round == 0) add_defaults(n, batch);
    if (batch.size() >= n) return batch;
    if (round % static_cast<uint64_t>(std::max(1, options_.redraft_every)) == 0 ||
        drafted_.size() < n) {
      redraft(round);
    }
    std::vector<Candidate> ranked = drafted_;
    if (options_.verify == VerifySet::kDraftAndRandom) add_children(round, ranked);
    verifier_.score(ranked);
    std::stable_sort(ranked.begin(), ranked.end(), scores_higher);
    const auto num_random = static_cast<std::size_t>(
        options_.random_share * static_cast<double>(n) + (round % 2 == 0 ? 0.5 : 0.99));
    const std::size_t wanted = n - std::min(n - batch.size(), num_random);
    pick(ranked, wanted, round, batch);
    pick(uniform_, n, kOpenRounds, batch);
    // A draft may be poorer than the batch is long.
    pick(ranked, n, kOpenRounds, batch);
    if (batch.size() < n) add_random(n, round, batch);
    return batch;
  }

  void tell(std::span<const Candidate> candidates,
            std::span<const Measurement> measurements) override {
    const auto start = std::chrono::steady_clock::now();
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      Candidate candidate = candidates[i];
      seen_.insert(candidate.fingerprint);
      tried_.insert(key_of(candidate));
      if (candidate.predicted_ns <= 0) set_predicted(candidate);
      verifier_.add(candidate, measurements[i]);
      if (measurements[i].ok() && candidate.sketch >= 0) {
        guard(candidate, measurements[i].median_ns);
        measured_.push_back({genome_of(candidate), measurements[i].median_ns});
      }
    }
    std::stable_sort(measured_.begin(), measured_.end(), [](const Measured& a, const Measured& b) {
      return a.median_ns < b.median_ns;
    });
    if (options_.calibrate) calibrate(candidates, measurements);
    verifier_.fit(options_.seed);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
    learn_s_ += spent.count();
  }

 private:
  struct Measured {
    Genome genome;
    double median_ns;
  };

  /// A candidate by its decisions.
  using Key = std::pair<int, std::vector<schedule::Decision>>;
  static Key key_of(const Candidate& candidate) {
    return {candidate.sketch, candidate.trace.decisions};
  }

  // Candidates restored from a store come without a prediction.
  void set_predicted(Candidate& candidate) const {
    if (candidate.sketch < 0) return;
    Result<Candidate> made =
        instantiate(task_, space_, candidate.sketch, candidate.trace.decisions);
    if (made) candidate.predicted_ns = made->predicted_ns;
  }

  std::vector<Candidate> realize_all(std::span<const Genome> genomes) {
    std::vector<std::optional<Candidate>> made = pool_.map<std::optional<Candidate>>(
        genomes.size(), [&](std::size_t i) -> std::optional<Candidate> {
          Result<Candidate> one =
              instantiate(task_, space_, genomes[i].sketch, genomes[i].decisions);
          if (!one) return std::nullopt;
          return std::move(one).value();
        });
    std::vector<Candidate> out;
    std::set<Fingerprint> known;
    for (std::optional<Candidate>& one : made) {
      if (!one || seen_.count(one->fingerprint) > 0) continue;
      if (known.insert(one->fingerprint).second) out.push_back(*std::move(one));
    }
    // An instance has the prediction of the hand values.
    if (coefficients_ != costmodel::hand_coefficients(task_.target.kind)) {
      predict_again(out);
    }
    return out;
  }

  // Decides between equal scores as a program's fingerprint does: by no order that means anything.
  static Fingerprint stand_in(const Genome& genome) {
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

  // As realize_all, but where symbols say all that ranking asks for nothing is made: a replay costs
  // a hundred times as much as a rank, and few of a draft are ever picked. pick() makes those.
  std::vector<Candidate> prospects(std::span<const Genome> genomes) {
    if (!is_lazy_) return realize_all(genomes);
    std::vector<Candidate> out;
    std::set<Key> known;
    for (const Genome& genome : genomes) {
      Candidate bare;
      bare.sketch = genome.sketch;
      bare.trace.decisions = genome.decisions;
      bare.fingerprint = stand_in(genome);
      Key key = key_of(bare);
      if (tried_.contains(key) || !known.insert(std::move(key)).second) continue;
      out.push_back(std::move(bare));
    }
    std::vector<Genome> without;
    const std::vector<Symbolic> said = evaluate(genomes_of(out));
    std::size_t kept = 0;
    for (std::size_t i = 0; i < out.size(); ++i) {
      if (!said[i].is_known) without.push_back(genome_of(out[i]));
      if (!said[i].is_known || !said[i].fits) continue;
      out[i].predicted_ns = said[i].ns;
      if (kept != i) out[kept] = std::move(out[i]);
      ++kept;
    }
    out.resize(kept);
    for (Candidate& made : realize_all(without)) out.push_back(std::move(made));
    return out;
  }

  // Their programs; empty for what a primitive refuses.
  std::vector<std::optional<Candidate>> made_of(std::vector<Candidate> some) const {
    return pool_.map<std::optional<Candidate>>(
        some.size(), [&](std::size_t i) -> std::optional<Candidate> {
          Candidate& c = some[i];
          if (c.program.defined()) return std::move(c);
          Result<Candidate> made = instantiate(task_, space_, c.sketch, c.trace.decisions);
          if (!made) return std::nullopt;
          made->predicted_ns = c.predicted_ns;
          made->score = c.score;
          return std::move(made).value();
        });
  }

  void add_defaults(std::size_t n, std::vector<Candidate>& batch) {
    std::vector<Genome> genomes;
    for (std::size_t i = 0; i < space_.sketches.size(); ++i) {
      genomes.push_back(default_genome(space_, static_cast<int>(i)));
    }
    std::vector<Candidate> made = realize_all(genomes);
    for (Candidate& c : made) c.score = -c.predicted_ns;
    std::stable_sort(made.begin(), made.end(), scores_higher);
    // Where not all of them fit the draft has its say as well.
    pick(made, made.size() <= n ? n : (n + 1) / 2, kOpenRounds, batch);
    num_drafted_ += static_cast<int64_t>(genomes.size());
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
  void calibrate(std::span<const Candidate> candidates, std::span<const Measurement> measurements) {
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
      calibrator_.add(sketch, genes, measured_ns, static_cast<int32_t>(options_.stream));
    }
    // Another task of the target may have moved the coefficients as well.
    calibrator_.refit();
    if (calibrator_.values() == coefficients_) return;
    coefficients_ = calibrator_.values();
    for (std::vector<Candidate>* list : {&drafted_, &uniform_}) {
      predict_again(*list);
    }
    verifier_.predict_again([this](std::span<const Genome> genomes) {
      std::vector<double> ns;
      for (const Symbolic& said : evaluate(genomes)) ns.push_back(said.ns);
      return ns;
    });
  }

  /// What symbols say of a candidate.
  struct Symbolic {
    bool is_known = false;  // not of sketches without symbols
    bool fits = false;
    double ns = 0;
  };

  // By the coefficients as they are now, in blocks for each sketch.
  std::vector<Symbolic> evaluate(std::span<const Genome> genomes) {
    std::vector<Symbolic> out(genomes.size());
    for (DraftSketch& sketch : draft_.sketches) {
      std::vector<std::vector<int32_t>> genes;
      std::vector<std::size_t> which;
      for (std::size_t i = 0; i < genomes.size(); ++i) {
        std::vector<int32_t> own = genes_of(sketch, genomes[i]);
        if (own.empty()) continue;
        genes.push_back(std::move(own));
        which.push_back(i);
      }
      if (which.empty()) continue;
      const std::vector<std::vector<double>> columns = columns_of(sketch, genes);
      std::vector<const double*> pointers;
      for (const std::vector<double>& column : columns) pointers.push_back(column.data());
      std::vector<double> ns(which.size()), fits(which.size());
      double* const outputs[] = {ns.data(), fits.data()};
      sketch.symbols.score.evaluate(pointers, which.size(), outputs, scratch_, coefficients_);
      for (std::size_t i = 0; i < which.size(); ++i) out[which[i]] = {true, fits[i] != 0, ns[i]};
    }
    return out;
  }

  static std::vector<Genome> genomes_of(std::span<const Candidate> candidates) {
    std::vector<Genome> out;
    for (const Candidate& c : candidates) out.push_back(genome_of(c));
    return out;
  }

  void predict_again(std::span<Candidate> candidates) {
    const std::vector<Symbolic> said = evaluate(genomes_of(candidates));
    for (std::size_t i = 0; i < said.size(); ++i) {
      if (said[i].ns > 0) candidates[i].predicted_ns = said[i].ns;
    }
  }

  SketchOffer offer_of(DraftSketch& sketch, uint64_t round) {
    Drafter drafter(sketch, static_cast<std::size_t>(draft_size_), coefficients_,
                    hash_combine(options_.seed, hash_combine(options_.stream, round)));
    for (const Measured& m : measured_) {
      const std::vector<int32_t> genes = genes_of(sketch, m.genome);
      if (genes.size() == sketch.tables.size()) drafter.exclude(genes);
    }
    for (std::size_t i = 0; i < std::min(kMeasuredParents, measured_.size()); ++i) {
      const std::vector<int32_t> genes = genes_of(sketch, measured_[i].genome);
      if (!genes.empty()) drafter.add_parent(genes);
    }
    if (space_.members != nullptr) {
      for (const int member : space_.members->of_sketch(sketch.sketch)) {
        const Candidate& c = space_.members->candidate(member);
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

  void redraft(uint64_t round) {
    std::vector<SketchOffer> offers = pool_.map<SketchOffer>(
        draft_.sketches.size(), [&](std::size_t s) { return offer_of(draft_.sketches[s], round); });
    for (const SketchOffer& offer : offers) num_drafted_ += offer.num_scored;
    SelectionOptions selection;
    selection.size = static_cast<std::size_t>(draft_size_);
    selection.stratified_share = options_.stratified_share;
    selection.uniform_share = options_.uniform_share;
    std::vector<Genome> genomes;
    for (const DraftPick& pick : select_draft(offers, draft_, selection)) {
      genomes.push_back(picked_genome(pick));
    }
    Rng rng(options_.seed, options_.stream, round);
    add_neighbours(rng, &genomes);
    for (const DraftSpace::Left& left : draft_.left) {
      for (int i = 0; i < kReplayedDraws; ++i) {
        genomes.push_back(random_genome(space_, left.sketch, rng));
      }
    }
    drafted_ = prospects(genomes);
    rank_.clear();
    for (std::size_t i = 0; i < drafted_.size(); ++i) rank_.emplace(key_of(drafted_[i]), i);
    uniform_ = draw_uniform(offers);
  }

  // Mutations and crossovers of the fastest measured ones. The analyzer may be wrong about a whole
  // region; what was measured there is right.
  void add_neighbours(Rng& rng, std::vector<Genome>* genomes) const {
    const std::size_t parents = std::min(kMeasuredParents, measured_.size());
    const auto wanted = static_cast<int>(options_.measured_share * draft_size_);
    for (int i = 0; parents > 0 && i < wanted; ++i) {
      // The better of two drawn ranks.
      const auto draw = [&] { return std::min(rng.below(parents), rng.below(parents)); };
      const Genome& mother = measured_[draw()].genome;
      const Genome& father = measured_[draw()].genome;
      const bool cross = father.sketch == mother.sketch && rng.chance(kCrossoverShare);
      genomes->push_back(cross ? crossover(space_, mother, father, rng)
                               : mutate(space_, mother, rng));
    }
  }

  // A few of each sketch's uniform sample, for the random share of the next batches.
  std::vector<Candidate> draw_uniform(const std::vector<SketchOffer>& offers) {
    constexpr std::size_t kEach = 8;
    std::vector<Genome> genomes;
    for (std::size_t i = 0; i < kEach; ++i) {
      for (std::size_t s = 0; s < offers.size(); ++s) {
        const std::vector<Drafted>& sample = offers[s].sample;
        if (i < sample.size()) genomes.push_back(picked_genome({static_cast<int>(s), sample[i]}));
      }
    }
    return prospects(genomes);
  }

  // What the published code adds to the draft: random candidates, the best measured, and one
  // generation of children of all.
  void add_children(uint64_t round, std::vector<Candidate>& ranked) {
    Rng rng = Rng(options_.seed, options_.stream, round).split(2);
    std::vector<Genome> genomes;
    const std::size_t size = ranked.size();
    for (std::size_t i = 0; i < size; ++i) {
      const int sketch = random_sketch(space_, rng);
      genomes.push_back(random_genome(space_, sketch, rng));
    }
    const std::size_t elite = std::min(measured_.size(), size / 10);
    for (std::size_t i = 0; i < elite; ++i) genomes.push_back(measured_[i].genome);
    for (std::size_t i = 0; i < size; ++i) {
      const Candidate& parent = ranked[rng.below(size)];
      genomes.push_back(mutate(space_, genome_of(parent), rng));
    }
    std::set<Fingerprint> known;
    for (const Candidate& c : ranked) known.insert(c.fingerprint);
    for (Candidate& made : realize_all(genomes)) {
      if (known.insert(made.fingerprint).second) ranked.push_back(std::move(made));
    }
    num_drafted_ += static_cast<int64_t>(genomes.size());
  }

  void pick(const std::vector<Candidate>& from, std::size_t until, uint64_t round,
            std::vector<Candidate>& batch) {
    std::map<int, std::size_t> taken;
    const bool open = round < kOpenRounds && space_.sketches.size() > 1;
    const auto most =
        open ? static_cast<std::size_t>(kMaxSketchShare * static_cast<double>(until)) + 1 : until;
    for (std::size_t next = 0; next < from.size() && batch.size() < until;) {
      // As many as are wanted; if some of them cannot be made, others follow.
      std::vector<Candidate> some;
      std::map<int, std::size_t> planned = taken;
      for (; next < from.size() && some.size() < until - batch.size(); ++next) {
        const Candidate& candidate = from[next];
        if (planned[candidate.sketch] >= most || is_known(candidate)) continue;
        ++planned[candidate.sketch];
        some.push_back(candidate);
      }
      for (std::optional<Candidate>& made : made_of(std::move(some))) {
        if (!made || !seen_.insert(made->fingerprint).second) continue;
        ++taken[made->sketch];
        batch.push_back(*std::move(made));
      }
    }
  }

  // Asked for or told; of one that is not made yet: tried before. Remembers that it is tried now.
  bool is_known(const Candidate& candidate) {
    if (candidate.program.defined()) return seen_.contains(candidate.fingerprint);
    return !tried_.insert(key_of(candidate)).second;
  }

  void add_random(std::size_t n, uint64_t round, std::vector<Candidate>& batch) {
    constexpr int kMaxDrawFactor = 12;
    Rng rng = Rng(options_.seed, options_.stream, round).split(1);
    for (int attempt = 0; attempt < kMaxDrawFactor && batch.size() < n; ++attempt) {
      std::vector<Genome> genomes;
      for (std::size_t i = 0; i < 2 * (n - batch.size()) + 4; ++i) {
        const int sketch = random_sketch(space_, rng);
        genomes.push_back(random_genome(space_, sketch, rng));
      }
      num_drafted_ += static_cast<int64_t>(genomes.size());
      pick(realize_all(genomes), n, kOpenRounds, batch);
    }
  }

  // Recall guard: winners from the rear of the draft mean that the analyzer's order is poor here.
  void guard(const Candidate& candidate, double median_ns) {
    const auto at = rank_.find(key_of(candidate));
    const bool is_best = measured_.empty() || median_ns < measured_[0].median_ns;
    if (at == rank_.end() || !is_best || options_.max_draft_size <= options_.draft_size) return;
    const double place = static_cast<double>(at->second) / static_cast<double>(rank_.size());
    draft_size_ = place > kGuardedPart ? draft_size_ * kWiden : draft_size_ / kWiden;
    draft_size_ = std::clamp(draft_size_, static_cast<double>(options_.draft_size),
                             static_cast<double>(options_.max_draft_size));
  }

  const Task& task_;
  const SearchSpace& space_;
  ThreadPool& pool_;
  DraftOptions options_;
  DraftSpace draft_;
  Verifier verifier_;
  const bool is_lazy_;  // candidates are made when they are picked
  Calibrator own_calibrator_;
  Calibrator& calibrator_;
  costmodel::CoefficientValues coefficients_;  // in use
  costmodel::SymbolScratch scratch_;
  double draft_size_;
  uint64_t round_ = 0;
  int64_t num_drafted_ = 0;
  double learn_s_ = 0;
  std::vector<Candidate> drafted_;   // the draft, in the analyzer's order; maybe without programs
  std::map<Key, std::size_t> rank_;  // places in it
  std::vector<Candidate> uniform_;
  std::set<Fingerprint> seen_;      // asked for or told
  std::set<Key> tried_;             // told, or was to be picked
  std::vector<Measured> measured_;  // fastest first
};

}  // namespace

DraftOptions published_draft(Analyzer analyzer, VerifySet verify) {
  DraftOptions out;
  out.analyzer = analyzer;
  out.verify = verify;
  out.max_draft_size = out.draft_size;
  out.draws = 1536;
  out.children = 2 * 1536;
  out.uniform_share = 0;
  out.measured_share = 0;
  out.stratified_share = 0;
  out.blend = false;
  out.calibrate = false;
  return out;
}

std::unique_ptr<Strategy> make_draft_strategy(const Task& task, const SearchSpace& space,
                                              std::unique_ptr<CandidateModel> model,
                                              ThreadPool& pool, const DraftOptions& options) {
  return std::make_unique<DraftStrategy>(task, space, std::move(model), pool, options);
}

Result<std::unique_ptr<Strategy>> make_draft(const StrategyContext& context, DraftOptions options) {
  options.seed = context.seed;
  options.stream = context.stream;
  options.calibrator = context.calibrator;
  std::unique_ptr<CandidateModel> model;
  if (context.network != nullptr) {
    model = make_network_model(context.task, context.space, context.network,
                               static_cast<int32_t>(context.stream), context.pool);
  } else if (costmodel::check_xgboost().ok()) {
    static const std::unique_ptr<costmodel::CostModel> trees = costmodel::make_xgb_model();
    model = make_program_model(context.task, *trees);
  }
  return make_draft_strategy(context.task, context.space, std::move(model), context.pool, options);
}

Result<std::unique_ptr<Strategy>> make_pruner(const StrategyContext& context) {
  return make_draft(context, {});
}

Result<std::unique_ptr<Strategy>> make_pruner_trees(const StrategyContext& context) {
  PRUNERC_TRY_VOID(costmodel::check_xgboost());
  return make_draft(context, {});
}

Result<std::unique_ptr<Strategy>> make_pruner_paper(const StrategyContext& context) {
  return make_draft(context, published_draft(Analyzer::kPruner, VerifySet::kDraft));
}

Result<std::unique_ptr<Strategy>> make_pruner_release(const StrategyContext& context) {
  return make_draft(context, published_draft(Analyzer::kPrunerRelease, VerifySet::kDraftAndRandom));
}

}  // namespace prunerc::search
