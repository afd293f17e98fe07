// Referee: who wins. Nothing does before it was verified, and finals decide between the best few.
#ifndef PRUNERC_SEARCH_TUNE_REFEREE_H_
#define PRUNERC_SEARCH_TUNE_REFEREE_H_

#include "ir/support/result.h"
#include "search/record/database.h"
#include "search/tune/inbox.h"
#include "search/tune/proofs.h"
#include "search/tune/task_state.h"
#include "search/tune/time_budget.h"
#include "search/tune/tuner.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace prunerc::search {

/// Keeps the report of each task: its best candidate is always one that was verified. Under a time
/// limit it verifies what fits, and at the end as much as it takes to have one. Threads: belongs to
/// one.
class Referee {
 public:
  /// All outlive this.
  Referee(Inbox& inbox, Database& database, const TuneOptions& options, Proofs& proofs,
          const TimeBudget& budget, std::vector<TaskState>& states)
      : inbox_(inbox),
        database_(database),
        options_(options),
        proofs_(proofs),
        budget_(budget),
        states_(states) {}

  /// A stored best from an older session may lack a verdict.
  Result<void> verify_best(std::size_t task);

  /// Verifies what would be a new best of these answers, the fastest first, until one is right;
  /// later, if that is too much of the time.
  void verify_winners(std::size_t task, std::span<const Candidate> candidates,
                      std::span<Measurement> answers);

  /// The best few of each task (or of those that options.chooser names, together) once more, in turns, so that one lucky sample does not decide, and neither does a
  /// moment in which the machine had other work. Afterwards each task with a right candidate has a
  /// verified best.
  Result<void> run_finals();

  /// What is kept back for the ends of the tasks that were begun. Units: s; 0 without a limit.
  double reserve_s() const;
  /// What must be left beside that for one more task: its own end, and what guesses of the others
  /// may take beyond what is kept back (held_back_s).
  double begin_s(const TaskState& state) const;

 private:
  std::optional<Measurement> ask_single(std::size_t task, const Candidate& candidate,
                                        MeasureKind kind, uint64_t seed);
  bool verify_one(std::size_t task, const Candidate& candidate, Measurement* m);
  Result<void> verify(std::size_t task, KnownCandidate& known);
  bool may_verify(const TaskState& state) const;
  double end_s(const TaskState& state, double verify_s) const;
  int num_finalists(std::size_t task) const;
  /// The best few of these tasks in common turns; the tasks for which that decided nothing.
  Result<std::vector<std::size_t>> run_finals_of(const std::vector<std::size_t>& tasks);
  struct Field;
  /// Turns until they decide; false if the call ended meanwhile.
  bool run_turns(Field& field);
  /// `fresh`: what the finals say of each finalist. Whether one of them won.
  Result<bool> crown(std::size_t task, std::vector<KnownCandidate>& finalists,
                     std::vector<Measurement>& fresh);

  Inbox& inbox_;
  Database& database_;
  const TuneOptions& options_;
  Proofs& proofs_;
  const TimeBudget& budget_;
  std::vector<TaskState>& states_;
  uint64_t next_seed_ = 1;
  double verified_s_ = 0;  // wall time of verifications so far
};

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_REFEREE_H_
