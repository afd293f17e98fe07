// Proofs: what the finite fields say of a call's candidates.
#ifndef PRUNERC_SEARCH_TUNE_PROOFS_H_
#define PRUNERC_SEARCH_TUNE_PROOFS_H_

#include "ir/support/parallel.h"
#include "search/tune/equality.h"
#include "search/tune/task_state.h"

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace prunerc::search {

/// Asks about candidates twice: before they are built, and before they are stored. Threads: belongs
/// to one.
class Proofs {
 public:
  Proofs(const EqualityCheck& check, uint64_t seed, ThreadPool& pool)
      : check_(check), seed_(seed), pool_(pool) {}

  /// Of candidates that nothing is known of, to kDraftLog2Error; a verdict for each, of no kind for
  /// those that were measured before.
  std::vector<ir::FpvVerdict> draft(TaskState& state, std::span<const Candidate> candidates);

  /// What the first check found equal is checked once more before it is stored, with other primes
  /// and inputs: at least as far as before, and until both verdicts together are as sure as wanted.
  /// Refuted answers turn into refutations. The fastest come first; `goes_on` is asked now and then.
  /// Those that are left when it says no, and those of which the first check found nothing, since
  /// their twins are dear or there are none, wait for `prove_winner`.
  void prove(TaskState& state, std::span<const Candidate> candidates,
             std::span<const ir::FpvVerdict> before, std::span<Measurement> answers,
             const std::function<bool()>& goes_on);

  /// Proves one that is about to win, unless that was asked in this call: then it answers as before.
  void prove_winner(TaskState& state, const Candidate& candidate, Measurement* answer);

  /// Adds the verdict to the evidence of a right result.
  void add_to(const TaskState& state, const Candidate& candidate, Measurement* m) const;

 private:
  struct Question {
    EqualityQuestion question;
    double known = 0;  // log2_error of the verdict before
    int tests = 0;
  };
  struct Proof {
    ir::FpvVerdict verdict;
    std::string words;  // said of a right result
  };
  /// Of a task's candidate.
  using Key = std::pair<int64_t, Fingerprint>;
  static Key key_of(const TaskState& state, const Candidate& candidate) {
    return {state.task_id, candidate.fingerprint};
  }
  void keep(const Key& key, ir::FpvVerdict verdict, const Question& question, Measurement* answer);

  const EqualityCheck& check_;
  uint64_t seed_;
  ThreadPool& pool_;
  std::map<Key, Proof> proofs_;  // of each that was asked about
};

/// The answer for a candidate that the verdict refutes.
Measurement refutation(const ir::FpvVerdict& verdict);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_PROOFS_H_
