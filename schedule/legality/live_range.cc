#include "schedule/legality/live_range.h"

#include <algorithm>
#include <utility>

namespace prunerc::schedule {
namespace {

/// Where buffers in shared memory begin.
constexpr int64_t kAlignment = 128;

}  // namespace

int64_t peak_amount(const std::vector<LiveRange>& ranges) {
  int64_t most = 0;
  for (const LiveRange& at : ranges) {
    int64_t sum = 0;
    for (const LiveRange& other : ranges) {
      if (other.first <= at.first && at.first <= other.last) sum += other.amount;
    }
    most = std::max(most, sum);
  }
  return most;
}

int64_t first_fit_bytes(const std::vector<LiveRange>& ranges) {
  std::vector<std::pair<LiveRange, int64_t>> done;  // with offsets
  int64_t end = 0;
  for (const LiveRange& range : ranges) {
    int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [other, at] : done) {
        if (!range.meets(other) || offset >= at + other.amount || at >= offset + range.amount) {
          continue;
        }
        offset = (at + other.amount + kAlignment - 1) / kAlignment * kAlignment;
        moved = true;
      }
    }
    done.emplace_back(range, offset);
    end = std::max(end, offset + range.amount);
  }
  return end;
}

}  // namespace prunerc::schedule
