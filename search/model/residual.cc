#include "search/model/residual.h"

#include <algorithm>
#include <cmath>

namespace prunerc::search {
namespace {

/// Weight lost per unit of distance.
constexpr double kDecay = 0.35;
/// Weight of "the model is right": keeps one odd sample from deciding.
constexpr double kPriorWeight = 0.6;
/// A failed candidate counts as this much slower than predicted (factor e).
constexpr double kFailure = 1.0;
/// One wild prediction must not outweigh all others.
constexpr double kMaxLogRatio = 3.0;

// Number of decisions that differ; categorical neighbours differ by less than strangers.
double distance(const Genome& a, const Genome& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.decisions.size(); ++i) {
    const schedule::Decision& x = a.decisions[i];
    const schedule::Decision& y = b.decisions[i];
    if (x == y) continue;
    if (x.size() == 1 && y.size() == 1) {
      total += std::min(1.0, 0.4 * static_cast<double>(std::abs(x[0] - y[0])));
    } else {
      total += 1;
    }
  }
  return total;
}

}  // namespace

void ResidualModel::add(const Genome& genome, double predicted_ns, double measured_ns) {
  if (predicted_ns <= 0 || measured_ns <= 0) return;
  const double ratio = std::log(measured_ns / predicted_ns);
  points_.push_back({genome, std::clamp(ratio, -kMaxLogRatio, kMaxLogRatio)});
}

void ResidualModel::add_failure(const Genome& genome) { points_.push_back({genome, kFailure}); }

double ResidualModel::correction(const Genome& genome) const {
  double weights = kPriorWeight;
  double total = 0;
  for (const Point& point : points_) {
    if (point.genome.sketch != genome.sketch) continue;
    const double weight = std::exp(-kDecay * distance(genome, point.genome) * 2);
    weights += weight;
    total += weight * point.log_ratio;
  }
  return total / weights;
}

}  // namespace prunerc::search
