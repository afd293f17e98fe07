// Schedules written as text: one primitive per line, as in a trace, outputs left out.
#ifndef PRUNERC_TESTS_SCHEDULE_APPLY_H_
#define PRUNERC_TESTS_SCHEDULE_APPLY_H_

#include "ir/support/result.h"
#include "schedule/schedule.h"

#include <string>
#include <string_view>

namespace prunerc::testing {

/// Applies each line to the schedule; stops at the first failure.
Result<void> apply_steps(schedule::Schedule& s, std::string_view steps);

/// Applies the steps to the program (both known to be good), every version verified. Checks that
/// the result computes the same, that the trace prints and parses back, and that its replay yields
/// the same program.
schedule::Schedule check_steps(std::string_view program, std::string_view steps);

/// All steps but the last apply; the last one must fail with that row of diag.def, without a
/// change.
void check_rejected(std::string_view program, std::string_view steps, std::string_view diag);

/// A row of a table test: steps on a program, and the row of diag.def with which the last of them
/// is refused (empty: all are accepted).
struct Case {
  Case(std::string_view on, std::string_view apply, std::string_view refused)
      : program(on), steps(apply), diag(refused) {}
  std::string program, steps, diag;
};
/// check_steps or check_rejected.
void check(const Case& row);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_SCHEDULE_APPLY_H_
