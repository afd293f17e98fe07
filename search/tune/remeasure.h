// remeasure(): the best rows of a pool, timed in many turns: who is best must not be luck.
#ifndef PRUNERC_SEARCH_TUNE_REMEASURE_H_
#define PRUNERC_SEARCH_TUNE_REMEASURE_H_

#include "search/record/pool.h"
#include "search/tune/inbox.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace prunerc::search {

struct RemeasureOptions {
  int best = 50;         // so many rows, those of the shortest times
  double within = 0.15;  // and what takes at most this part longer than the best
  int turns = 7;         // each of them is timed once in each
};

/// The rows that options mean, by their times, ascending.
std::vector<std::size_t> contenders(const Pool& pool, const RemeasureOptions& options);

/// A time of each candidate from several turns: turns[t][i] is candidate i's in turn t, 0 if it has
/// none. Turns are brought to one level first, since a clock that moves between them says nothing
/// about candidates; then medians. `spread` is the median deviation over the median. Units: ns.
struct TurnTime {
  double median_ns = 0;  // 0: no turn had a time
  double spread = 0;
};
std::vector<TurnTime> join_turns(std::span<const std::vector<double>> turns);

/// Why remeasuring ended; only what is complete changes the pool.
enum class RemeasureEnd : uint8_t { kComplete, kNothingRan, kCancelled, kDeviceLost };

/// Times the contenders anew, in turns, so that all of them see the same moments of the machine,
/// and compares the outputs of those that nobody has verified. A row that computes something wrong,
/// or runs in no turn any more, takes that status. The other rows keep their times, maybe of
/// another day: the new ones are scaled so that the median ratio to the old ones is 1 (which leaves
/// in what luck the contenders have in common). `task` must be the pool's. Errors: PoolStale if
/// this build makes another program of a row. Cost: builds, and for a row and a turn what one
/// measurement takes: 15 ms for short kernels.
Result<RemeasureEnd> remeasure(const Task& task, Inbox& inbox, const RemeasureOptions& options,
                               Pool* pool);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_REMEASURE_H_
