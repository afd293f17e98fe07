// Calibration: the analyzer's coefficients fitted to what was measured, kept only if they order
// better.
#ifndef PRUNERC_COSTMODEL_LATENCY_CALIBRATE_H_
#define PRUNERC_COSTMODEL_LATENCY_CALIBRATE_H_

#include "costmodel/latency/coefficients.h"

#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::costmodel {

struct SymbolProgram;

/// One measured candidate as the analyzer sees it.
struct CalibrationSample {
  int32_t task = 0;              // only candidates of one task are compared with each other
  std::vector<double> parts_ns;  // of all terms: kNumTermParts each
  double launch_ns = 0;
  double measured_ns = 0;
};

struct CalibrationOptions {
  /// What a doubled factor costs, in squared residuals: few samples move little.
  double prior_weight = 2.0;
  int iterations = 30;
  uint64_t seed = 0;  // of the held-out quarter
};

/// Ranks are Spearman's, of the held-out candidates, mean over tasks; residuals are of log2.
struct Calibration {
  CoefficientValues values;  // the prior's if is_kept is false
  bool is_kept = false;
  double rank_before = 0, rank_after = 0;
  double residual_before = 0, residual_after = 0;
};

/// Spearman's, of two lists of one length; equal values share their mean rank. 0 where one has no order.
/// Cost: O(n log n).
double rank_correlation(std::span<const double> a, std::span<const double> b);

/// ns that the coefficients give.
double predict_ns(const CalibrationSample& sample, const CoefficientValues& values);

/// Damped Gauss-Newton on log-latency residuals through the formula itself: of the largest part the
/// whole, of the others the share that is not hidden. Each task has an offset of its own, which
/// does not change its order. Factors stay within 1/8 and 8 of the prior, the share within 0 and 1.
/// Cost: O(iterations * samples * parts).
Calibration calibrate(std::span<const CalibrationSample> samples, const CoefficientValues& prior,
                      const CalibrationOptions& options = {});

/// Samples of one task: the outputs of program.parts for its candidates. columns by ParamId.
std::vector<CalibrationSample> calibration_samples(const SymbolProgram& program,
                                                   std::span<const double* const> columns,
                                                   std::span<const double> measured_ns,
                                                   int32_t task);

}  // namespace prunerc::costmodel

#endif  // PRUNERC_COSTMODEL_LATENCY_CALIBRATE_H_
