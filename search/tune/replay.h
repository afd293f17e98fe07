// Replay: a search against recorded times. No device is needed, and a thousand trials take seconds.
#ifndef PRUNERC_SEARCH_TUNE_REPLAY_H_
#define PRUNERC_SEARCH_TUNE_REPLAY_H_

#include "search/record/pool.h"
#include "search/space/members.h"
#include "search/tune/tuner.h"

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace prunerc::search {

/// One pool made ready: its task, and a space that holds exactly its candidates.
struct ReplayTask {
  Task task;
  SearchSpace space;
  std::vector<PoolRow> rows;

  /// Errors: those of Pool::task; PoolStale.
  static Result<ReplayTask> make(const Pool& pool, ThreadPool& threads);
};

/// Answers at once, in the order of asking, with what was recorded: status, time, spread, and the
/// seconds that building and measuring took. A verification says what the recording's said.
class ReplayMeasurer : public Measurer {
 public:
  /// `tasks` must outlive this; requests name one of them.
  explicit ReplayMeasurer(std::span<const ReplayTask> tasks) : tasks_(tasks) {}
  void submit(MeasureInput input) override;
  std::optional<MeasureOutcome> next(Deadline deadline) override;

 private:
  Measurement recorded(const MeasureInput& input) const;

  std::span<const ReplayTask> tasks_;
  std::deque<MeasureOutcome> done_;
};

/// Tunes the tasks against their recorded times; nothing is stored. The clock (time_s, seconds of
/// the curve) is what searching takes here plus the recorded seconds of building and measuring, one
/// after the other. Finals and checks are left out: all that is known was recorded, and a best is
/// verified if its row is. Errors: those of tune.
Result<TuneReport> replay(std::span<const ReplayTask> tasks, TuneOptions options);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_REPLAY_H_
