#include "search/record/measurement.h"

#include <algorithm>
#include <cmath>

namespace prunerc::search {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

void summarize_samples(Measurement& measurement) {
  const double median = median_of(measurement.samples_ns);
  std::vector<double> deviations;
  for (const double sample : measurement.samples_ns)
    deviations.push_back(std::abs(sample - median));
  measurement.median_ns = median;
  measurement.spread = median > 0 ? median_of(std::move(deviations)) / median : 0;
}

}  // namespace prunerc::search
