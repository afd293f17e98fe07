#include "search/space/members.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace prunerc::search {
namespace {

// A place in a space in which the distance is the sum over coordinates: an index, the code of a
// place, or log2 of a tile.
std::vector<double> place_of(const Sketch& sketch, std::span<const schedule::Decision> decisions) {
  std::vector<double> out;
  for (std::size_t i = 0; i < decisions.size(); ++i) {
    const schedule::PrimitiveKind kind = sketch.spaces[i].primitive;
    const bool is_tile = kind != schedule::PrimitiveKind::kSampleCategorical &&
                         kind != schedule::PrimitiveKind::kSampleComputeLocation;
    for (const int64_t value : decisions[i]) {
      out.push_back(is_tile ? std::log2(static_cast<double>(std::max<int64_t>(value, 1)))
                            : static_cast<double>(value));
    }
  }
  return out;
}

double distance(const std::vector<double>& a, const std::vector<double>& b) {
  double total = 0;
  for (std::size_t i = 0; i < a.size(); ++i) total += std::abs(a[i] - b[i]);
  return total;
}

}  // namespace

double decision_distance(const Sketch& sketch, std::span<const schedule::Decision> a,
                         std::span<const schedule::Decision> b) {
  return distance(place_of(sketch, a), place_of(sketch, b));
}

Members::Members(std::vector<Sketch> sketches, std::vector<std::optional<Candidate>> rows)
    : sketches_(std::move(sketches)), by_sketch_(sketches_.size()) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i] || by_program_.contains(rows[i]->fingerprint)) {
      ++num_stale_;
      continue;
    }
    const int member = size();
    const auto sketch = static_cast<std::size_t>(rows[i]->sketch);
    by_sketch_[sketch].push_back(member);
    by_decisions_[{rows[i]->sketch, rows[i]->trace.decisions}] = member;
    by_program_[rows[i]->fingerprint] = member;
    rows_.push_back(static_cast<int>(i));
    places_.push_back(place_of(sketches_[sketch], rows[i]->trace.decisions));
    candidates_.push_back(*std::move(rows[i]));
  }
  for (std::size_t i = 0; i < by_sketch_.size(); ++i) {
    if (!by_sketch_[i].empty()) used_sketches_.push_back(static_cast<int>(i));
  }
}

int Members::find(int sketch, std::span<const schedule::Decision> decisions) const {
  const auto at = by_decisions_.find({sketch, {decisions.begin(), decisions.end()}});
  return at != by_decisions_.end() ? at->second : -1;
}

int Members::find(const Fingerprint& program) const {
  const auto at = by_program_.find(program);
  return at != by_program_.end() ? at->second : -1;
}

int Members::nearest(int sketch, std::span<const schedule::Decision> decisions, int except) const {
  const std::vector<double> from = place_of(sketches_[static_cast<std::size_t>(sketch)], decisions);
  int best = -1;
  double least = 0;
  for (const int member : of_sketch(sketch)) {
    if (member == except) continue;
    const double steps = distance(from, places_[static_cast<std::size_t>(member)]);
    if (best >= 0 && steps >= least) continue;
    best = member;
    least = steps;
  }
  return best;
}

}  // namespace prunerc::search
