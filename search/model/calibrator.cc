#include "search/model/calibrator.h"

#include <iterator>

namespace prunerc::search {
namespace {

/// Before so many candidates a fit is not tried: a dozen coefficients, a quarter held out.
constexpr std::size_t kFirstFit = 48;
/// Data of a fit over that of the one before.
constexpr double kGrowth = 1.5;

}  // namespace

Calibrator::Calibrator(ir::TargetKind kind, uint64_t seed)
    : hand_(costmodel::hand_coefficients(kind)),
      values_(hand_),
      seed_(seed),
      next_fit_(kFirstFit) {}

void Calibrator::add(const DraftSketch& sketch, std::span<const std::vector<int32_t>> genes,
                     std::span<const double> measured_ns, int32_t task) {
  if (genes.empty() || sketch.symbols.parts.num_outputs() == 0) return;
  const std::vector<std::vector<double>> columns = columns_of(sketch, genes);
  std::vector<const double*> pointers;
  for (const std::vector<double>& column : columns) pointers.push_back(column.data());
  std::vector<costmodel::CalibrationSample> made =
      costmodel::calibration_samples(sketch.symbols, pointers, measured_ns, task);
  samples_.insert(samples_.end(), std::make_move_iterator(made.begin()),
                  std::make_move_iterator(made.end()));
}

bool Calibrator::refit() {
  if (samples_.size() < next_fit_) return false;
  next_fit_ = static_cast<std::size_t>(kGrowth * static_cast<double>(samples_.size()));
  last_ = costmodel::calibrate(samples_, hand_, {.seed = seed_});
  const bool changed = values_ != last_.values;
  values_ = last_.values;
  return changed;
}

}  // namespace prunerc::search
