// Calibrator: the analyzer's coefficients, fitted to what a search measures.
#ifndef PRUNERC_SEARCH_MODEL_CALIBRATOR_H_
#define PRUNERC_SEARCH_MODEL_CALIBRATOR_H_

#include "costmodel/latency/calibrate.h"
#include "ir/target.h"
#include "search/space/draft_space.h"

#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::search {

/// Starts from the hand values; fits again whenever there is half as much data again. Coefficients
/// belong to a platform, so one calibrator may serve all tasks of a target. Deterministic in the
/// order of the calls.
class Calibrator {
 public:
  Calibrator(ir::TargetKind kind, uint64_t seed);

  /// Candidates of one sketch that ran. `task`: only candidates of one are compared with each
  /// other. Without effect for analyzers whose symbols have no parts.
  void add(const DraftSketch& sketch, std::span<const std::vector<int32_t>> genes,
           std::span<const double> measured_ns, int32_t task);
  /// Whether the coefficients are others now. Cost: some ms for a thousand candidates.
  bool refit();
  const costmodel::CoefficientValues& values() const { return values_; }
  std::size_t num_samples() const { return samples_.size(); }
  const costmodel::Calibration& last() const { return last_; }

 private:
  costmodel::CoefficientValues hand_;
  costmodel::CoefficientValues values_;
  uint64_t seed_;
  std::vector<costmodel::CalibrationSample> samples_;
  std::size_t next_fit_;
  costmodel::Calibration last_;
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_MODEL_CALIBRATOR_H_
