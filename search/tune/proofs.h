// Proofs: what the finite fields say of a call's candidates.
#ifndef PRUNERC_SEARCH_TUNE_PROOFS_H_
#define PRUNERC_SEARCH_TUNE_PROOFS_H_

#include "ir/support/parallel.h"
#include "search/tune/equality.h"
#include "search/tune/task_state.h"

#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
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

  /// What is about to be stored as a result is checked once more, with other primes and inputs: at
  /// least as far as before, and until both verdicts together are as sure as wanted. Refuted
  /// answers turn into refutations. The fastest come first; `goes_on`, if there is one, is asked now
  /// and then, and those that are left when it says no stay unproved until `prove_left_out`.
  void prove(TaskState& state, std::span<const Candidate> candidates,
             std::span<const ir::FpvVerdict> before, std::span<Measurement> answers,
             const std::function<bool()>& goes_on);

  /// Proves a candidate that `prove` left out; nothing if it did not.
  void prove_left_out(TaskState& state, const Candidate& candidate, Measurement* answer);

  /// Adds the verdict to the evidence of a right result.
  void add_to(const Candidate& candidate, Measurement* m) const;

 private:
  struct Question {
    EqualityQuestion question;
    double known = 0;  // log2_error of the verdict before
    int tests = 0;
  };
  void keep(const Candidate& candidate, ir::FpvVerdict verdict, const Question& question,
            Measurement* answer);

  const EqualityCheck& check_;
  uint64_t seed_;
  ThreadPool& pool_;
  std::map<Fingerprint, std::string> proofs_;  // what is said of each that was asked about
  std::set<Fingerprint> left_out_;
};

/// The answer for a candidate that the verdict refutes.
Measurement refutation(const ir::FpvVerdict& verdict);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_PROOFS_H_
