// Live ranges of buffers: room that several have after each other is counted once.
#ifndef PRUNERC_SCHEDULE_LEGALITY_LIVE_RANGE_H_
#define PRUNERC_SCHEDULE_LEGALITY_LIVE_RANGE_H_

#include <cstdint>
#include <vector>

namespace prunerc::schedule {

/// What a buffer takes from the first block to the last one between which its values live.
struct LiveRange {
  int first = 0, last = 0;
  int64_t amount = 0;
  bool meets(const LiveRange& other) const { return first <= other.last && other.first <= last; }
};

/// The most that is taken at one time.
int64_t peak_amount(const std::vector<LiveRange>& ranges);

/// The bytes that first fit gives, in this order, as the planner of shared memory places buffers.
int64_t first_fit_bytes(const std::vector<LiveRange>& ranges);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_LEGALITY_LIVE_RANGE_H_
