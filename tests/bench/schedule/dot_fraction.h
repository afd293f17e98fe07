// What hand-written schedules reach of the machine's dot-product rate.
#ifndef PRUNERC_TESTS_BENCH_SCHEDULE_DOT_FRACTION_H_
#define PRUNERC_TESTS_BENCH_SCHEDULE_DOT_FRACTION_H_

#include "ir/support/result.h"

#include <string>
#include <vector>

namespace prunerc::bench {

struct DotRow {
  std::string name;     // int8_vnni_fraction, bf16_dot_fraction
  double fraction = 0;  // of the peak that a loop in registers reached between the runs
  double gops = 0;
  double peak_gops = 0;
  double goal = 0.5;
};

/// Schedules C = A B (1024 x 1024 x 1024) by the scripts in tests/bench/schedule/dot, compares every element
/// with a plain product, and times it on one thread in turns with the peak, by CPU time; best of
/// each. Rows of instructions that this CPU lacks are left out. Errors: those of scheduling and
/// compiling; KernelRun if an element is wrong.
Result<std::vector<DotRow>> dot_fraction_rows();

}  // namespace prunerc::bench

#endif  // PRUNERC_TESTS_BENCH_SCHEDULE_DOT_FRACTION_H_
