// Alternatives: an operator tuned together with programs that compute the same, of which one is used.
#ifndef PRUNERC_SEARCH_ALGEBRA_ALTERNATIVES_H_
#define PRUNERC_SEARCH_ALGEBRA_ALTERNATIVES_H_

#include "ir/support/result.h"
#include "search/algebra/derive.h"
#include "search/record/database.h"
#include "search/space/task.h"
#include "search/tune/sampled.h"
#include "search/tune/tuner.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace prunerc::search::algebra {

/// So many derived programs are tuned beside their operator.
inline constexpr std::size_t kMostAlternatives = 6;
/// A derived program must gain more than this over its operator, or what times scatter by.
inline constexpr double kLeastGain = 0.02;

/// A derived program that was shown to compute what its operator does.
struct Alternative {
  Task task;  // derived_task of the operator's
  DerivedLink link;
};

/// Either an alternative, or why the program is none.
struct Judged {
  std::optional<Alternative> alternative;
  std::string refusal;
};

/// Checks a derived program against its operator's to kStoredLog2Error, whatever was found when it
/// was made, which must have been good too: whole, or on sampled tiles if they are large. `seed` is
/// to be another one than the deriver's. Cost: about a second for large programs.
Judged judge(const Task& spec, const Derived& derived, uint64_t seed);

/// The task of a program that a link is of.
Task task_of_link(const Task& spec, const ir::Program& program, const DerivedLink& link);

/// The task of a link that is stored; empty if this build makes another one of its texts, or if its
/// parameters are not the operator's. What the link says is believed. Cost: ms.
std::optional<Task> stored_task(const Task& spec, const DerivedRow& row);

/// Compares a link's program with its operator's anew; `seed` decides all. Who wrote it may know which tiles are
/// sampled, so that a large one is to be equal at small extents as well.
SampledVerdict check_link(const Task& spec, const Task& derived, uint64_t seed);
/// The same of what this build derived itself, of which the form of its programs is known: where they are too
/// large to be compared so, both at small extents of two sizes, as forms are (D58).
SampledVerdict check_own_link(const Task& spec, const Task& derived, uint64_t seed);
/// Whether that is enough for the link to be believed.
bool is_shown(const SampledVerdict& found);
/// The link as this verdict has it; no claim any more.
DerivedLink with_verdict(DerivedLink link, const ir::FpvVerdict& verdict);

/// Whether the derived program's time is better by more than kLeastGain and both spreads.
bool is_faster(const Measurement& derived, const Measurement& spec);

struct AlternativesReport {
  TuneReport tune;         // of the operator, then of the alternatives in their order
  std::size_t winner = 0;  // of these; 0: the operator as it is written
};

/// Tunes an operator and its alternatives with the trials that `options` has for the operator alone
/// (of total_trials if it has those). Successive halving: a few trials for each; more for the best
/// three, the operator always among them; the rest for the fastest. Finals are held between the
/// best of the operator and of the fastest alternative in common turns, and the operator stays
/// unless is_faster. Each link is stored before its task is tuned. Deterministic as tune is.
/// Errors: those of tune; NoSketch of any task.
Result<AlternativesReport> tune_alternatives(const Task& spec,
                                             std::span<const Alternative> alternatives,
                                             Measurer& measurer, Database& database,
                                             const TuneOptions& options);

/// How many trials each gets first, and how many more the best few, of `total` for so many tasks (0:
/// any number).
struct HalvingPlan {
  int64_t first = 0, second = 0;
  bool operator==(const HalvingPlan&) const = default;
};
HalvingPlan plan_halving(std::size_t num_tasks, int64_t total);

/// The rows of one operator's tasks as one row, the winner's with all trials, by its name.
TaskReport joined(const Task& spec, std::span<const TaskReport> rows, std::size_t winner);
/// The fastest of these; 0 if none ran.
std::size_t fastest(std::span<const TaskReport> rows);

}  // namespace prunerc::search::algebra

#endif  // PRUNERC_SEARCH_ALGEBRA_ALTERNATIVES_H_
