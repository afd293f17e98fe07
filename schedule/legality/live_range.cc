#include "schedule/legality/live_range.h"

#include <algorithm>
#include <utility>

namespace prunerc::schedule {
namespace {

/// Where buffers in shared memory begin.
constexpr int64_t kAlignment = 128;

}  // namespace

int64_t peak(const std::vector<Claim>& claims) {
  int64_t most = 0;
  for (const Claim& at : claims) {
    int64_t sum = 0;
    for (const Claim& other : claims) {
      if (other.first <= at.first && at.first <= other.last) sum += other.amount;
    }
    most = std::max(most, sum);
  }
  return most;
}

int64_t placed(const std::vector<Claim>& claims) {
  std::vector<std::pair<Claim, int64_t>> done;  // with offsets
  int64_t end = 0;
  for (const Claim& claim : claims) {
    int64_t offset = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [other, at] : done) {
        if (!claim.meets(other) || offset >= at + other.amount || at >= offset + claim.amount) {
          continue;
        }
        offset = (at + other.amount + kAlignment - 1) / kAlignment * kAlignment;
        moved = true;
      }
    }
    done.emplace_back(claim, offset);
    end = std::max(end, offset + claim.amount);
  }
  return end;
}

}  // namespace prunerc::schedule
