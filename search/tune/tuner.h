// tune(): asks a strategy for candidates, has them measured, verifies what wins, stores everything.
#ifndef PRUNERC_SEARCH_TUNE_TUNER_H_
#define PRUNERC_SEARCH_TUNE_TUNER_H_

#include "ir/support/result.h"
#include "search/record/database.h"
#include "search/record/restore.h"
#include "search/space/space.h"
#include "search/space/task.h"
#include "search/strategy/strategies.h"
#include "search/tune/equality.h"
#include "search/tune/measurer.h"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::search {

/// What the time of a call is.
enum class TuneClock : uint8_t {
  kWall,
  kRecorded,  // what searching and learning take, and the seconds that answers say of building and
              // measuring, one after the other: a pool's answers come at once
};

/// Where time went. Build, measure and verify are summed over candidates and overlap each other.
/// Units: seconds.
struct PhaseSeconds {
  double build = 0, measure = 0, search = 0, learn = 0, verify = 0;
  double total = 0;  // wall clock
  /// Of the total of a call: the time in which something was being built or measured. What is left
  /// is what a call spends on everything else.
  double busy = 0;
};

/// Why tuning of a task ended.
enum class StopReason : uint8_t { kTrials, kTime, kEarly, kExhausted, kCancelled, kDeviceLost };
std::string_view to_string(StopReason reason);

/// A gain: after so many trials of the task, so many seconds into the call.
struct CurvePoint {
  int64_t trial = 0;
  double best_ns = 0;
  double seconds = 0;      // by the call's clock
  int64_t call_trial = 0;  // trials of all tasks by then
};

/// One row of the live table and of the final report.
struct TaskReport {
  std::string name;
  std::string target;
  std::string timer;
  uint64_t seed = 0;
  double weight = 1;
  double best_ns = 0;  // 0: nothing ran and was right
  Work work;
  double gflops = 0;      // of Task::flops
  double gops = 0;        // of the work's rated operations
  double gbps = 0;        // of its bytes
  int64_t trials = 0;     // measured in this call
  int64_t reused = 0;     // known from the store and not measured again
  LeftAside left_aside;   // of the store
  int64_t drafted = 0;    // proposals of the space that were instantiated and scored
  int64_t unchecked = 0;  // asked for, and nothing is known of their equality before they run
  int64_t last_gain = 0;  // trial number of the last improvement
  bool slowed = false;    // other work slowed the machine down while the best was timed
  bool verified = false;  // the best was compared with the unscheduled program
  std::string evidence;
  StatusCounts counts = {};  // of this call's trials
  std::string failure;       // what was said of the first trial that failed
  PhaseSeconds seconds;
  StopReason stop = StopReason::kTrials;
  Record best;                    // of best_ns
  ir::Program best_program;       // undefined if there is none
  std::vector<CurvePoint> curve;  // at each gain
};

struct TuneReport {
  std::vector<TaskReport> tasks;
  PhaseSeconds seconds;
  double total_weighted_ns = 0;  // sum of weight * best_ns
  bool cancelled = false;
};

/// What a display needs, after every answer. The spans live during the call only.
struct TuneProgress {
  std::span<const TaskReport> tasks;
  int current_task = 0;
  int64_t trials_done = 0;
  int64_t trials_total = 0;  // 0 if only time limits
  double elapsed_s = 0;
  PhaseSeconds seconds;
};

/// What one of a call's tasks has come to.
struct TaskStanding {
  bool is_open = true;   // may be asked for more
  int64_t asked = 0;     // candidates handed out
  int64_t answered = 0;  // of them, and stored
  double best_ns = 0;    // of the fastest that is known, verified or not; 0: none ran
};

/// Says whose turn it is among tasks of which only one will be used, instead of task_scheduler.h,
/// which wants all of them fast. Must decide by the standings alone.
class TaskChooser {
 public:
  struct Turn {
    int task = -1;     // -1: nobody's before more is answered
    int64_t most = 0;  // candidates of the batch
  };
  virtual ~TaskChooser() = default;
  virtual Turn next(std::span<const TaskStanding> tasks) = 0;
  /// Those whose best candidates meet in the finals; the others have none.
  virtual std::vector<std::size_t> finalists(std::span<const TaskStanding> tasks) = 0;
};

struct TuneOptions {
  int64_t trials = 64;       // per task; 0: no limit
  int64_t total_trials = 0;  // of all tasks together, given where they gain most; 0: no limit
  /// For all tasks together, verification and finals included (TimeBudget); 0: no limit.
  double time_s = 0;
  int64_t early_stop = 0;     // end a task after so many trials without a gain; 0: never
  int batch = 0;              // 0: the strategy's own
  int first_batch = 0;        // of a task among several; 0: the strategy's own
  int batches_in_flight = 0;  // builds of one batch overlap the measurement of the other; 0: own
  /// The best so many are measured again in turns before one is declared the winner; 0: none.
  int finals = 4;
  uint64_t seed = 0;
  int num_threads =
      0;  // of the search itself; 0: one per hardware thread. Choices do not depend on it
  StrategyKind strategy = StrategyKind::kPruner;
  /// StrategyContext::heuristics.
  std::optional<bool> heuristics;
  /// Makes the strategy, for one with other settings than `strategy` has; that still says how it is
  /// asked. Empty: make_strategy.
  std::function<Result<std::unique_ptr<Strategy>>(const StrategyContext&)> make_strategy;
  /// Where the strategy's network starts: as of open_network.
  std::string checkpoint;
  /// Asked of every candidate before it is built, to kDraftLog2Error; of those it found equal again
  /// before they are stored, for what is then missing to kStoredLog2Error, and of the others before
  /// they win. Not equal and invalid ones are answered with kNotEqual. Empty: none is checked.
  EqualityCheck check = check_on_twin;
  /// Makes the space of a task; empty: make_space.
  std::function<Result<SearchSpace>(const Task&)> space;
  /// Of tasks that are alternatives of each other; null: each is wanted. Must outlive the call.
  TaskChooser* chooser = nullptr;
  TuneClock clock = TuneClock::kWall;
  bool fresh = false;        // ignore what is stored
  bool claims_only = false;  // of what is stored as imported, and search for nothing
  std::string timer;         // description of how samples are taken, kept in records
  std::string version;
  const std::atomic<bool>* cancel = nullptr;  // set it to stop; what was answered is kept
  std::function<void(const TuneProgress&)> on_progress;
  /// What begins now, if it may take seconds without an answer: "verifying dense".
  std::function<void(std::string_view)> on_phase;
  std::function<void(std::string_view)> log;  // every choice and answer, one line each
};

inline void tell_phase(const TuneOptions& options, std::string_view phase) {
  if (options.on_phase) options.on_phase(phase);
}

/// Tunes all tasks, more effort where more can be gained (task_scheduler.h). Deterministic in
/// (options.seed, answers in submission order) unless a time limit ends it. Under a time limit the
/// search ends early enough for verification and finals; it is late only where a single
/// verification takes longer than was left, as each task that ran gets a verified best. A task for
/// which nothing valid was found has best_ns 0. Errors: NoSketch; those of the database.
Result<TuneReport> tune(std::span<const Task> tasks, Measurer& measurer, Database& database,
                        const TuneOptions& options);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_TUNER_H_
