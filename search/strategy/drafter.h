// Drafter: goes through very many candidates of one sketch and keeps those that the analyzer likes
// best.
#ifndef PRUNERC_SEARCH_STRATEGY_DRAFTER_H_
#define PRUNERC_SEARCH_STRATEGY_DRAFTER_H_

#include "ir/support/rng.h"
#include "search/space/draft_space.h"
#include "search/strategy/key_set.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::search {

/// A candidate as genes, one per decision.
struct Drafted {
  double ns = 0;  // by the analyzer
  uint64_t key = 0;
  std::vector<int32_t> genes;
};

/// Counts of one drafter since it was made.
struct DraftCounts {
  int64_t proposed = 0;  // drawn or bred, copies included
  int64_t scored = 0;    // distinct ones
  int64_t feasible = 0;  // of them within the limits
};

/// Distinct candidates in blocks: draw or breed, leave out what was seen, evaluate the symbols of
/// whole blocks, offer to the best. Nothing is allocated for a candidate that is not kept.
/// Deterministic in the seed and the calls. Threads: belongs to one; drafters of different sketches
/// are independent.
class Drafter {
 public:
  /// Keeps up to `keep` candidates. `coefficients` are the analyzer's; may be empty for a code
  /// without any. The sketch must outlive the drafter and is extended by neighbours.
  Drafter(DraftSketch& sketch, std::size_t keep, std::span<const double> coefficients,
          uint64_t seed);

  /// Never proposed from now on.
  void exclude(std::span<const int32_t> genes);
  /// A parent for breed() besides the best, for instance one that was measured as fast.
  void add_parent(std::span<const int32_t> genes);

  /// A given candidate, among others of a list; finish(), draw() and breed() score what is left of
  /// the last block.
  void propose(std::span<const int32_t> genes);
  void finish();

  /// Draws uniformly; stops early when nearly all that comes is known.
  void draw(int64_t n);
  /// Mutations and crossovers of the best so far, chosen by rank: scores may be anything.
  void breed(int64_t n);

  /// Best first; ties by key.
  std::vector<Drafted> best() const;
  /// Feasible ones of the first draws, in the order drawn: a uniform sample.
  std::span<const Drafted> sample() const { return sample_; }
  const DraftCounts& counts() const { return counts_; }

 private:
  static constexpr std::size_t kBlock = costmodel::SymbolCode::kBlock;

  uint64_t key_of(std::size_t row) const;
  void put(std::size_t row, std::span<const int32_t> genes);
  void breed_row(std::size_t row, std::span<const Drafted> parents);
  /// Of the n rows behind the waiting ones the new ones wait too, and a full block is scored.
  /// Returns how many were new.
  std::size_t take(std::size_t n, bool to_sample);
  /// Scores the first n of the waiting rows; the others move up.
  void score(std::size_t n, bool to_sample);
  void gather(std::size_t n);
  void offer(double ns, uint64_t key, std::size_t row);
  void prune();

  DraftSketch& sketch_;
  std::size_t keep_;
  std::vector<double> coefficients_;
  Rng rng_;
  KeySet seen_;
  DraftCounts counts_;
  std::vector<std::vector<int32_t>> genes_;   // by decision: two blocks
  std::vector<std::vector<double>> columns_;  // by parameter: one block
  std::vector<const double*> column_of_;      // by parameter
  std::vector<double> ns_, fits_;
  std::vector<uint64_t> keys_;
  std::size_t num_waiting_ = 0;   // new rows that are not scored yet, less than a block
  std::size_t num_proposed_ = 0;  // rows behind them of a block of given candidates
  costmodel::SymbolScratch scratch_;
  double worst_ = 0;  // what a newcomer must beat once `keep` are held
  std::vector<Drafted> held_;
  std::vector<Drafted> sample_;
  std::vector<Drafted> parents_;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_STRATEGY_DRAFTER_H_
