// Parametric sketches: a trace whose decisions stay open gives one program with tile parameters,
// and numbers for these give its candidates.
#ifndef PRUNERC_SCHEDULE_PARAMETRIC_PARAMETRIC_H_
#define PRUNERC_SCHEDULE_PARAMETRIC_PARAMETRIC_H_

#include "ir/program.h"
#include "ir/support/ids.h"
#include "ir/support/result.h"
#include "ir/tile_space.h"
#include "schedule/trace/trace.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace prunerc::schedule {

/// An attribute whose value is offset + max(least, factor * product of the parameters): the program
/// holds that of the recorded decisions.
struct OpenAttr {
  ir::LoopId loop;    // of either
  ir::BlockId block;  // kind
  std::string key;
  int64_t factor = 1;
  std::vector<ir::ParamId> params;
  int64_t least = 0;
  int64_t offset = 0;
  int64_t value(std::span<const int64_t> values) const;
};

/// A sketch as one program. Parameters are named as the trace's values: v0, v1, ..
struct Parametric {
  ir::Program program;  // validated; loops, shapes and subscripts over program.domain()
  /// By decision: its parameters. A categorical decision has one, which holds the value, not the
  /// index; tiles have one per level, covering ones also for the outermost level, which the
  /// decision leaves out; a decision about structure (a place) has none.
  std::vector<std::vector<ir::ParamId>> params;
  std::vector<OpenAttr> attrs;
  ir::DomainSpace space;            // of program.domain()
  std::vector<Decision> decisions;  // the recorded ones
};

/// Applies the trace to `base` with its decisions left open. The trace is one that replays on
/// `base` with its own ids and decisions, as those of sketches do: whatever is illegal then is
/// refused here. What cannot be decided for all values is left to the instances, each of which is
/// replayed before anybody relies on it. Errors: those of replay; ParamBase; ParamOperand where a
/// primitive needs a number; others of the primitives where an expression over parameters has no
/// form that they can work with.
Result<Parametric> parametrize(const ir::Program& base, const Trace& trace);

/// Values by ParamId. Errors: DecisionMismatch; ParamStructure if a decision about structure is not
/// the recorded one.
Result<std::vector<int64_t>> param_values(const Parametric& sketch,
                                          std::span<const Decision> decisions);
/// The inverse. The values are of the domain.
std::vector<Decision> decisions_of(const Parametric& sketch, std::span<const int64_t> values);

/// Are these values of the domain, with its constraints? Errors: ParamCount, ParamDomain,
/// ParamConstraint.
Result<void> check_values(const Parametric& sketch, std::span<const int64_t> values);

/// The program of one candidate, in normal form: numbers in the place of parameters, then
/// simplified. Structurally equal to `normal_form` of a replay with these decisions, if that replay
/// is legal: nothing is checked here but the values. Errors: as check_values.
Result<ir::Program> instantiate(const Parametric& sketch, std::span<const int64_t> values);

/// The same program with simplified expressions (guards that always hold and single iterations'
/// variables are gone), in one arena.
ir::Program normal_form(const ir::Program& program);

}  // namespace prunerc::schedule

#endif  // PRUNERC_SCHEDULE_PARAMETRIC_PARAMETRIC_H_
