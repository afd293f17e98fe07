// record_pool(): fills a pool with measured candidates, drawn from the whole space and found by
// search.
#ifndef PRUNERC_SEARCH_TUNE_RECORDER_H_
#define PRUNERC_SEARCH_TUNE_RECORDER_H_

#include "search/record/pool.h"
#include "search/tune/equality.h"
#include "search/tune/measurer.h"
#include "search/tune/remeasure.h"

#include <atomic>
#include <cstdint>
#include <functional>

namespace prunerc::search {

struct RecordOptions {
  int64_t candidates = 2000;  // rows wanted
  double time_s = 0;          // stop collecting after so long; 0: no limit
  int num_threads = 0;        // of the search itself; 0: one per hardware thread
  int batch = 32;             // rows between two calls of `save`
  /// The rows that are measured again once all are there.
  RemeasureOptions finals;
  /// Asked of every candidate before it is built; what it refutes is a row without a time. Empty:
  /// none is checked.
  EqualityCheck check = check_on_twin;
  const std::atomic<bool>* cancel = nullptr;
  /// After every batch, and at the end: keeps what is there. An error ends the recording.
  std::function<Result<void>(const Pool&)> save;
};

/// Why a recording ended.
enum class RecordEnd : uint8_t {
  kComplete,   // as many rows as wanted, the best of them measured again
  kTime,       // the next call goes on
  kCancelled,  // the next call goes on
  kExhausted,  // the space has no more candidates; complete all the same
  kDeviceLost,
};

/// Goes on where `pool` ends; pool->seed and pool->share_searched say what is drawn. The share that
/// a search finds comes from the evolutionary strategy, which learns from all rows. `task` must be
/// the pool's. Errors: PoolStale if this build makes other programs of the rows; those of `save`.
Result<RecordEnd> record_pool(const Task& task, Measurer& measurer, const RecordOptions& options,
                              Pool* pool);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_RECORDER_H_
