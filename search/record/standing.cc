#include "search/record/standing.h"

#include "ir/support/check.h"

#include <algorithm>

namespace prunerc::search {

double quieter(double a_ns, double b_ns) {
  if (a_ns <= 0 || b_ns <= 0) return std::max(a_ns, b_ns);
  return std::min(a_ns, b_ns);
}

bool is_slowed(const Measurement& m, double quiet_ns) {
  if (m.disturbed) return true;
  return quiet_ns > 0 && m.machine.reference_ns > kSlowedReference * quiet_ns;
}

std::size_t standing(std::span<const Measurement> measurements, double quiet_ns) {
  PRUNERC_CHECK(!measurements.empty(), "one of several counts");
  for (std::size_t i = measurements.size(); i-- > 0;) {
    if (!is_slowed(measurements[i], quiet_ns)) return i;
  }
  const auto shortest = std::min_element(
      measurements.begin(), measurements.end(),
      [](const Measurement& a, const Measurement& b) { return a.median_ns < b.median_ns; });
  return static_cast<std::size_t>(shortest - measurements.begin());
}

std::string evidence_of(std::span<const Measurement> measurements) {
  for (std::size_t i = measurements.size(); i-- > 0;) {
    if (!measurements[i].evidence.empty()) return measurements[i].evidence;
  }
  return "";
}

}  // namespace prunerc::search
