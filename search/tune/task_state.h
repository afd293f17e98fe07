// TaskState: what tune() keeps for one task: its space, its strategy, what is known, and its row of
// the report.
#ifndef PRUNERC_SEARCH_TUNE_TASK_STATE_H_
#define PRUNERC_SEARCH_TUNE_TASK_STATE_H_

#include "ir/support/parallel.h"
#include "search/space/space.h"
#include "search/strategy/strategy.h"
#include "search/tune/task_scheduler.h"
#include "search/tune/time_budget.h"
#include "search/tune/tuner.h"

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace prunerc::search {

struct KnownCandidate {
  Candidate candidate;
  Measurement measurement;
};

struct TaskState {
  const Task* task = nullptr;
  int64_t task_id = 0;
  std::unique_ptr<SearchSpace> space;  // a pointer: the strategy keeps a reference
  std::unique_ptr<Strategy> strategy;
  TaskReport report;
  int64_t asked = 0;     // candidates handed out
  int64_t answered = 0;  // of them, told back
  int rounds_asked = 0;
  // The fastest known after each settled batch, verified or not; without seconds.
  std::vector<CurvePoint> best_by_round;
  std::string group;              // of tasks that are alike, for the scheduler
  std::vector<Candidate> claims;  // of imported records, by what they say of their times
  bool ended = false;
  // Wall time: comparing a candidate, timing it again, asking the strategy for a batch.
  StepCost verify_cost, final_cost, ask_cost;
  double quiet_ns = 0;  // the least reference beside any measurement of the task

  /// Reads the store (unless options.fresh), makes the space, primes the strategy with what is
  /// known.
  static Result<TaskState> make(const Task& task, Database& database, ThreadPool& pool,
                                const TuneOptions& options, uint64_t stream, Calibrator* calibrator,
                                std::shared_ptr<OnlineModel> network);

  /// Null if the candidate was never measured.
  const Measurement* known(const Fingerprint& fingerprint) const;
  void add_known(const Candidate& candidate, const Measurement& measurement);
  /// Ok candidates, fastest first, at most n.
  std::vector<KnownCandidate> leaders(int n) const;
  /// Those among them that are faster than the best and not verified.
  std::vector<KnownCandidate> unverified_leaders() const;

  std::size_t batch_size(const TuneOptions& options) const;
  void count_time(const Measurement& measurement);
  /// An answer that says nothing of its candidate.
  void count_lost(const Measurement& answer);
  void set_best(const Candidate& candidate, const Measurement& measurement);
  void update(std::span<const Candidate> candidates, std::span<const Measurement> answers,
              const TuneOptions& options, double seconds, int64_t trials_of_others);
  TaskProgress progress(const TuneOptions& options) const;
  void end(StopReason reason);

  Record make_record(const Candidate& candidate, const Measurement& measurement,
                     const TuneOptions& options) const;
  Result<void> store(Database& database, std::span<const Candidate> candidates,
                     std::span<const Measurement> answers, const TuneOptions& options);

 private:
  Result<void> load(Database& database);
  /// Of all known candidates that ran, verified or not; 0: none did.
  double fastest_ns() const;
  static std::vector<Record> standing_of(std::vector<Record> records);

  std::map<Fingerprint, KnownCandidate> known_;
};

/// For TaskChooser.
std::vector<TaskStanding> standings_of(std::span<const TaskState> states);

/// The sketch and its decisions in one line, for logs.
std::string describe_choice(const Candidate& candidate);

/// Joins the verdict of a verification to a timing.
void apply_verdict(Measurement& measurement, const Measurement& verdict);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_TASK_STATE_H_
