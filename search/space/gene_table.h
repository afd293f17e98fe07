// GeneTable: the values of one decision as small numbers (genes), with the columns of parameters
// that belong to them.
#ifndef PRUNERC_SEARCH_SPACE_GENE_TABLE_H_
#define PRUNERC_SEARCH_SPACE_GENE_TABLE_H_

#include "ir/support/rng.h"
#include "schedule/trace/trace.h"

#include <cstdint>
#include <map>
#include <vector>

namespace prunerc::search {

/// A gene is an index into the table. All values of a small space are listed; of a large one a
/// uniform sample, to which neighbours are added as they are asked for. Threads: draw and column
/// may be used from several threads while nobody adds.
class GeneTable {
 public:
  /// Spaces up to this size are listed whole; larger ones start with a sample of this size.
  static constexpr int64_t kMaxListed = int64_t{1} << 14;

  GeneTable(const schedule::DecisionSpace& space, uint64_t seed);
  /// One value that cannot change (a structural decision).
  explicit GeneTable(schedule::Decision only);

  /// Number of genes that draw chooses from, each with equal probability.
  int32_t num_drawn() const { return num_drawn_; }
  int32_t size() const { return static_cast<int32_t>(decisions_.size()); }
  int32_t draw(Rng& rng) const {
    return static_cast<int32_t>(rng.below(static_cast<uint64_t>(num_drawn_)));
  }
  /// One step away (schedule::mutate_decision's neighbourhood); the gene itself if it has none.
  int32_t neighbour(int32_t gene, Rng& rng);
  /// Adds the decision if it is new; -1 if it does not belong to the space.
  int32_t find(const schedule::Decision& decision);

  const schedule::Decision& decision(int32_t gene) const {
    return decisions_[static_cast<std::size_t>(gene)];
  }
  /// By gene, what parameter `level` of the decision is: the value of a categorical one; a tile,
  /// outermost first (also of covering tiles, whose decisions leave it out).
  std::size_t num_levels() const { return columns_.size(); }
  const double* column(std::size_t level) const { return columns_[level].data(); }

 private:
  int32_t add(schedule::Decision decision);
  void list_all();
  void sample(uint64_t seed);
  std::vector<double> levels_of(const schedule::Decision& decision) const;

  schedule::DecisionSpace space_;
  bool is_fixed_ = false;
  int32_t num_drawn_ = 0;
  std::vector<schedule::Decision> decisions_;
  std::vector<std::vector<double>> columns_;
  std::map<schedule::Decision, int32_t> genes_;
  std::vector<std::vector<int32_t>> neighbours_;  // empty: not asked for yet
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_SPACE_GENE_TABLE_H_
