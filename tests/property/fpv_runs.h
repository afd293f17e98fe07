// The verifier on many programs: random legal traces, which must pass, and mutants, which must not.
#ifndef PRUNERC_TESTS_PROPERTY_FPV_RUNS_H_
#define PRUNERC_TESTS_PROPERTY_FPV_RUNS_H_

#include "schedule/trace/trace.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace prunerc::testing {

/// Operators of the gallery in turn, each rewritten by at least kTraceSteps random primitives;
/// every other trace is for a primitive that is rare so far.
inline constexpr int kTraceSteps = 8;

struct TraceTally {
  int traces = 0;
  int false_alarms = 0;
  int unsupported = 0;
  // Not among the traces: primitives bind loop by loop, so that threads of one loop may take
  // registers of another's (ir/analysis/ownership.h). The verifier must call each invalid. Where
  // data decides that, nothing is known.
  int strays = 0, strays_missed = 0, strays_unknown = 0;
  int non_dividing = 0;                   // traces with a split that leaves a tail
  std::map<std::string, int> primitives;  // traces that have it
  std::map<std::string, int> operators;   // traces of it
  std::vector<std::string> alarms;        // the first few, with trace and program
  double check_s = 0;
};
TraceTally run_traces(int num_traces, uint64_t seed);

struct MutantTally {
  int counted = 0;   // the interpreter differs or faults on small whole numbers
  int accepted = 0;  // of these, called equal
  int unsupported = 0;
  int same = 0;                      // not counted: the interpreter sees nothing
  int same_caught = 0;               // of these, rejected all the same
  std::map<std::string, int> kinds;  // of the counted
  std::vector<std::string> accepted_texts;
  std::vector<std::string> same_texts;  // what was not counted and passed: kind, operator
  double check_s = 0;
};
/// Mutants of gallery operators, every other one after a few random primitives, until `num_counted`
/// count.
MutantTally run_mutants(int num_counted, uint64_t seed);

}  // namespace prunerc::testing

#endif  // PRUNERC_TESTS_PROPERTY_FPV_RUNS_H_
