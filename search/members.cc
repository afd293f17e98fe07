#include "search/members.h"

#include "search/restore.h"

#include <algorithm>
#include <cmath>

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

Result<Members> Members::of_pool(const Pool& pool, const Task& task, ThreadPool& threads) {
  Members members;
  members.sketches_ = pool.sketches;
  members.by_sketch_.resize(pool.sketches.size());
  std::vector<std::optional<Candidate>> made = restore_rows(pool, task, threads);
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (!made[i] || members.by_program_.contains(made[i]->fingerprint)) {
      ++members.num_stale_;
      continue;
    }
    const int member = members.size();
    const auto sketch = static_cast<std::size_t>(made[i]->sketch);
    members.by_sketch_[sketch].push_back(member);
    members.by_decisions_[{made[i]->sketch, made[i]->trace.decisions}] = member;
    members.by_program_[made[i]->fingerprint] = member;
    members.rows_.push_back(static_cast<int>(i));
    members.places_.push_back(place_of(pool.sketches[sketch], made[i]->trace.decisions));
    members.candidates_.push_back(*std::move(made[i]));
  }
  if (members.candidates_.empty()) return error(Diag::kPoolStale, pool.op);
  for (std::size_t i = 0; i < members.by_sketch_.size(); ++i) {
    if (!members.by_sketch_[i].empty()) members.used_sketches_.push_back(static_cast<int>(i));
  }
  return members;
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
