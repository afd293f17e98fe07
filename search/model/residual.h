// What measuring taught about the cost model's errors: a correction learned from the nearest
// measured candidates.
#ifndef PRUNERC_SEARCH_MODEL_RESIDUAL_H_
#define PRUNERC_SEARCH_MODEL_RESIDUAL_H_

#include "search/space/candidate.h"

#include <vector>

namespace prunerc::search {

/// Weighted mean of log(measured / predicted) over measured candidates of the same sketch, nearer
/// ones first. Deterministic in the order of add().
class ResidualModel {
 public:
  /// A candidate that ran. Units: ns.
  void add(const Genome& genome, double predicted_ns, double measured_ns);
  /// A candidate that failed: its neighbourhood looks slow.
  void add_failure(const Genome& genome);
  /// What to add to log(predicted_ns); 0 where nothing is known.
  double correction(const Genome& genome) const;

 private:
  struct Point {
    Genome genome;
    double log_ratio;
  };
  std::vector<Point> points_;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_RESIDUAL_H_
