// Whether a candidate computes what its task does, decided on a small twin in finite fields before
// anything is built.
#ifndef PRUNERC_SEARCH_TUNE_EQUALITY_H_
#define PRUNERC_SEARCH_TUNE_EQUALITY_H_

#include "ir/fpv/fpv.h"
#include "ir/support/parallel.h"
#include "schedule/trace/trace.h"
#include "search/space/candidate.h"
#include "search/space/task.h"

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

namespace prunerc::search {

/// Wanted chance of a wrong "equal", as a power of two: of a candidate that is to be measured, and
/// of one that is stored.
inline constexpr double kDraftLog2Error = -20;
inline constexpr double kStoredLog2Error = -64;

/// Compares two programs for that chance of a wrong "equal".
using Comparison = std::function<ir::FpvVerdict(const ir::Program& from, const ir::Program& to,
                                                ir::Roundings roundings, double log2_error)>;

/// What a schedule makes of a base, in pieces: up to each step that rounds elsewhere, that step alone, all behind the
/// last. `around`: the programs before and after these steps (schedule::ReplayOptions). Such a step is compared without
/// roundings if it is not equal with them; whatever is before and behind rounds as it did. The bounds add up.
ir::FpvVerdict check_in_pieces(const ir::Program& base, std::span<const ir::Program> around,
                               const ir::Program& scheduled, double log2_error,
                               const Comparison& compare);

/// Of two comparisons, the second of what the first led to: one that refutes, else one that is not equal, else both.
ir::FpvVerdict joined(const ir::FpvVerdict& first, const ir::FpvVerdict& second);

struct EqualityResult {
  ir::FpvVerdict verdict;
  double seconds = 0;
};

/// `seed` decides primes, keys and inputs. Threads: must be safe to call at once.
using EqualityCheck = std::function<EqualityResult(const Task& task, const schedule::Trace& trace,
                                                   double log2_error, uint64_t seed)>;

/// Replays the trace on a twin and compares it with the twin's base (schedule/twin/twin.h,
/// ir/fpv/fpv.h), in pieces. A trace without a twin, or whose twin takes too long, is Unsupported. Cost: 10 ms
/// at 2^-20 for most operators, at most about 0.1 s and 1 s.
EqualityResult check_on_twin(const Task& task, const schedule::Trace& trace, double log2_error,
                             uint64_t seed);

/// Whether the verdict keeps a candidate from being measured or stored.
inline bool is_refuted(const ir::FpvVerdict& verdict) {
  return verdict.kind == ir::VerdictKind::kNotEqual || verdict.kind == ir::VerdictKind::kInvalid ||
         verdict.kind == ir::VerdictKind::kSpecInvalid;
}

struct EqualityQuestion {
  std::size_t candidate = 0;
  double log2_error = kDraftLog2Error;
};

/// Asks about candidates by the pool; results in the questions' order, whatever thread made them.
/// Each has a seed of its own, which depends on its program and on `round`: verdicts of two rounds
/// are independent, so that both are wrong with the product of their chances.
std::vector<EqualityResult> check_candidates(const EqualityCheck& check, const Task& task,
                                             std::span<const Candidate> candidates,
                                             std::span<const EqualityQuestion> questions,
                                             uint64_t round, uint64_t seed, ThreadPool& pool);

}  // namespace prunerc::search

#endif  // PRUNERC_SEARCH_TUNE_EQUALITY_H_
