// The core that all strategies but `grid` share: remembers what was asked for and measured, keeps
// shares and quotas, and fills batches from what a proposer proposes and a scorer ranks.
#ifndef PRUNERC_SEARCH_STRATEGY_POPULATION_H_
#define PRUNERC_SEARCH_STRATEGY_POPULATION_H_

#include "ir/support/rng.h"
#include "search/model/scorer.h"
#include "search/space/sampler.h"
#include "search/strategy/strategies.h"
#include "search/strategy/strategy.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <vector>

namespace prunerc::search {

/// Whether one sketch may fill a batch.
enum class SketchQuota : uint8_t { kNone, kHalf };

/// What was asked for and what was measured, and the means to make more.
class Population {
 public:
  struct Measured {
    Genome genome;
    double median_ns;
  };

  explicit Population(const StrategyContext& context) : context_(context) {}

  const StrategyContext& context() const { return context_; }
  /// The random numbers of a round; parts of a round have streams of their own (Rng::split).
  Rng rng(uint64_t round) const { return Rng(context_.seed, context_.stream, round); }
  /// What ran, fastest first.
  std::span<const Measured> measured() const { return measured_; }
  /// The sketches' heuristic decisions; none where StrategyContext::heuristics forbids them.
  std::vector<Genome> heuristics() const;
  Genome draw(Rng& rng) const;

  /// Legal ones in the order of the genomes.
  std::vector<Candidate> make(std::span<const Genome> genomes);
  void count_drafted(std::size_t n) { num_drafted_ += static_cast<int64_t>(n); }
  int64_t num_drafted() const { return num_drafted_; }

  bool was_asked(const Fingerprint& program) const { return asked_.contains(program); }
  bool was_tried(const Genome& genome) const { return tried_.contains(genome); }
  /// Remembers that a program was told; false if it had been.
  bool is_first_answer(const Fingerprint& program) { return told_.insert(program).second; }
  /// Adds it to the batch unless it was asked for before.
  void take(const Candidate& candidate, std::vector<Candidate>* batch);
  /// Takes candidates in order until the batch has `until`. Those without a program get one, as many
  /// as are wanted at a time; what a primitive then refuses is replaced by the next.
  void pick(std::span<const Candidate> from, std::size_t until, SketchQuota quota,
            std::vector<Candidate>* batch);

  /// An answer.
  void add(const Candidate& candidate, const Measurement& measurement);
  /// After the last add of a tell.
  void sort_measured();

 private:
  bool is_known(const Candidate& candidate);
  std::vector<std::optional<Candidate>> with_programs(std::vector<Candidate> some) const;

  const StrategyContext context_;
  std::set<Fingerprint> asked_;  // or told
  std::set<Fingerprint> told_;
  std::set<Genome> tried_;  // told, or was to be picked
  std::vector<Measured> measured_;
  int64_t num_drafted_ = 0;
};

/// Where candidates come from. A proposer belongs to one strategy.
class Proposer {
 public:
  virtual ~Proposer() = default;
  /// Of a round in which n candidates are asked for, best first by the scorer; may hold what was
  /// asked for before, and candidates without a program.
  virtual std::vector<Candidate> propose(uint64_t round, std::size_t n, Population& population,
                                         Scorer& scorer) = 0;
  /// The random share: of what the proposer drew in this round, whatever the scorer says.
  virtual void take_sample(std::size_t /*until*/, Population& /*population*/,
                           std::vector<Candidate>* /*batch*/) {}
  /// The batch is made up: what is of this round alone may go.
  virtual void end_round() {}
  /// Predictions by the proposer's analyzer, where that is another than the candidates came with.
  virtual void predict(std::span<Candidate> /*candidates*/) {}
  /// What was measured; `best_before_ns`: the fastest until then, 0 if there was none.
  virtual void tell(std::span<const Candidate> /*candidates*/,
                    std::span<const Measurement> /*measurements*/, double /*best_before_ns*/,
                    Scorer& /*scorer*/) {}
};

/// What fills the places of a batch that ranked candidates leave free, in order.
enum class Rest : uint8_t {
  kSample,  // the proposer's own random candidates
  kRanked,  // more ranked ones
  kDraws,   // uniform draws from the space
};

/// Of the first batch, where heuristic decisions come first: the rest is for what the ranking likes.
inline constexpr double kHeuristicsShare = 0.5;

/// How a round's batch is made up.
struct PopulationOptions {
  /// The first candidates are the sketches' heuristic decisions; of the first batch this part, if
  /// not all of them fit.
  bool heuristics_first = true;
  double heuristics_share = 1;
  bool heuristics_by_scorer = true;  // in the scorer's order, or by the analyzer's prediction alone
  /// A program that is told again (finals, a store's duplicates) teaches nothing new.
  bool first_answer_counts = false;
  /// Of a batch: not ranked, so that a wrong model cannot starve a sketch.
  double random_share = 0.1;
  /// Half places of the random share: down and up in turns, or always down.
  bool round_in_turns = true;
  /// In the first rounds no sketch fills more than half of a batch, so that each is judged by
  /// measurements.
  bool sketch_quotas = true;
  std::vector<Rest> rest = {Rest::kDraws};
};

/// `proposer` null: all is random; the scorer orders the heuristic decisions.
std::unique_ptr<Strategy> make_population_strategy(const StrategyContext& context,
                                                   const PopulationOptions& options,
                                                   std::unique_ptr<Proposer> proposer,
                                                   std::unique_ptr<Scorer> scorer);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_POPULATION_H_
